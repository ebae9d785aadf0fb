from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SubscribeRequest(_message.Message):
    __slots__ = ("filters_json", "after", "batches")
    FILTERS_JSON_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    filters_json: str
    after: str
    batches: bool
    def __init__(self, filters_json: _Optional[str] = ..., after: _Optional[str] = ..., batches: _Optional[bool] = ...) -> None: ...

class SubscribeResponse(_message.Message):
    __slots__ = ("token", "after")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    token: str
    after: str
    def __init__(self, token: _Optional[str] = ..., after: _Optional[str] = ...) -> None: ...

class StreamRequest(_message.Message):
    __slots__ = ("token", "after")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    token: str
    after: str
    def __init__(self, token: _Optional[str] = ..., after: _Optional[str] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("seq", "anchor", "chain", "block", "index", "kind", "id", "time", "fields_json")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    ANCHOR_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    FIELDS_JSON_FIELD_NUMBER: _ClassVar[int]
    seq: int
    anchor: int
    chain: int
    block: int
    index: int
    kind: str
    id: bytes
    time: int
    fields_json: str
    def __init__(self, seq: _Optional[int] = ..., anchor: _Optional[int] = ..., chain: _Optional[int] = ..., block: _Optional[int] = ..., index: _Optional[int] = ..., kind: _Optional[str] = ..., id: _Optional[bytes] = ..., time: _Optional[int] = ..., fields_json: _Optional[str] = ...) -> None: ...

class EventsMessage(_message.Message):
    __slots__ = ("events", "cursor")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    cursor: str
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., cursor: _Optional[str] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: str
    def __init__(self, token: _Optional[str] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
