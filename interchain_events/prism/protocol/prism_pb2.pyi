from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FilterType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FILTER_TYPE_UNSPECIFIED: _ClassVar[FilterType]
    DID_OWNER_ANY_FILTER: _ClassVar[FilterType]
    UPDATE_DID_FILTER: _ClassVar[FilterType]
    CREDENTIALS_ISSUANCE_FILTER: _ClassVar[FilterType]
    CREDENTIALS_REVOCATION_FILTER: _ClassVar[FilterType]
    ANONYMOUS_ANY_FILTER: _ClassVar[FilterType]
    CREATE_DID_FILTER: _ClassVar[FilterType]
    REVOKE_CREDENTIAL_FILTER: _ClassVar[FilterType]
    STORAGE_ENTRIES_FILTER: _ClassVar[FilterType]

class OperationOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPERATION_OUTCOME_UNSPECIFIED: _ClassVar[OperationOutcome]
    OUTCOME_APPLIED: _ClassVar[OperationOutcome]
    OUTCOME_REJECTED: _ClassVar[OperationOutcome]

class OperationType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN: _ClassVar[OperationType]
    CREATE_DID: _ClassVar[OperationType]
    UPDATE_DID: _ClassVar[OperationType]
    ISSUE_CREDENTIAL_BATCH: _ClassVar[OperationType]
    REVOKE_CREDENTIALS: _ClassVar[OperationType]
    PROTOCOL_VERSION_UPDATE: _ClassVar[OperationType]
    DEACTIVATE_DID: _ClassVar[OperationType]
    CREATE_STORAGE_ENTRY: _ClassVar[OperationType]
    UPDATE_STORAGE_ENTRY: _ClassVar[OperationType]
    DEACTIVATE_STORAGE_ENTRY: _ClassVar[OperationType]

class RejectReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NONE: _ClassVar[RejectReason]
    UNSUPPORTED_OPERATION: _ClassVar[RejectReason]
    MALFORMED_OPERATION: _ClassVar[RejectReason]
    UNKNOWN_DID: _ClassVar[RejectReason]
    UNKNOWN_BATCH: _ClassVar[RejectReason]
    UNKNOWN_KEY: _ClassVar[RejectReason]
    INVALID_SIGNATURE: _ClassVar[RejectReason]
    DUPLICATE_OPERATION: _ClassVar[RejectReason]
    WRONG_KEY_USAGE: _ClassVar[RejectReason]
    KEY_REVOKED: _ClassVar[RejectReason]
    WRONG_PREVIOUS_HASH: _ClassVar[RejectReason]
    KEY_EXISTS: _ClassVar[RejectReason]
    KEY_NOT_ACTIVE: _ClassVar[RejectReason]
    SERVICE_EXISTS: _ClassVar[RejectReason]
    SERVICE_NOT_ACTIVE: _ClassVar[RejectReason]
    CONTEXT_EMPTY: _ClassVar[RejectReason]
    LAST_MASTER_KEY: _ClassVar[RejectReason]
    TOO_MANY_KEYS: _ClassVar[RejectReason]
    TOO_MANY_SERVICES: _ClassVar[RejectReason]
    BATCH_EXISTS: _ClassVar[RejectReason]
    BATCH_ALREADY_REVOKED: _ClassVar[RejectReason]
    UNKNOWN_STORAGE_ENTRY: _ClassVar[RejectReason]
    STORAGE_ENTRY_NOT_ACTIVE: _ClassVar[RejectReason]

class OperationStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPERATION_STATUS_UNSPECIFIED: _ClassVar[OperationStatus]
    PENDING: _ClassVar[OperationStatus]
    CANCELLED: _ClassVar[OperationStatus]
    IN_BLOCK: _ClassVar[OperationStatus]
    CONFIRMATION_LEVEL: _ClassVar[OperationStatus]
    APPROVED: _ClassVar[OperationStatus]
    REJECTED: _ClassVar[OperationStatus]
FILTER_TYPE_UNSPECIFIED: FilterType
DID_OWNER_ANY_FILTER: FilterType
UPDATE_DID_FILTER: FilterType
CREDENTIALS_ISSUANCE_FILTER: FilterType
CREDENTIALS_REVOCATION_FILTER: FilterType
ANONYMOUS_ANY_FILTER: FilterType
CREATE_DID_FILTER: FilterType
REVOKE_CREDENTIAL_FILTER: FilterType
STORAGE_ENTRIES_FILTER: FilterType
OPERATION_OUTCOME_UNSPECIFIED: OperationOutcome
OUTCOME_APPLIED: OperationOutcome
OUTCOME_REJECTED: OperationOutcome
UNKNOWN: OperationType
CREATE_DID: OperationType
UPDATE_DID: OperationType
ISSUE_CREDENTIAL_BATCH: OperationType
REVOKE_CREDENTIALS: OperationType
PROTOCOL_VERSION_UPDATE: OperationType
DEACTIVATE_DID: OperationType
CREATE_STORAGE_ENTRY: OperationType
UPDATE_STORAGE_ENTRY: OperationType
DEACTIVATE_STORAGE_ENTRY: OperationType
NONE: RejectReason
UNSUPPORTED_OPERATION: RejectReason
MALFORMED_OPERATION: RejectReason
UNKNOWN_DID: RejectReason
UNKNOWN_BATCH: RejectReason
UNKNOWN_KEY: RejectReason
INVALID_SIGNATURE: RejectReason
DUPLICATE_OPERATION: RejectReason
WRONG_KEY_USAGE: RejectReason
KEY_REVOKED: RejectReason
WRONG_PREVIOUS_HASH: RejectReason
KEY_EXISTS: RejectReason
KEY_NOT_ACTIVE: RejectReason
SERVICE_EXISTS: RejectReason
SERVICE_NOT_ACTIVE: RejectReason
CONTEXT_EMPTY: RejectReason
LAST_MASTER_KEY: RejectReason
TOO_MANY_KEYS: RejectReason
TOO_MANY_SERVICES: RejectReason
BATCH_EXISTS: RejectReason
BATCH_ALREADY_REVOKED: RejectReason
UNKNOWN_STORAGE_ENTRY: RejectReason
STORAGE_ENTRY_NOT_ACTIVE: RejectReason
OPERATION_STATUS_UNSPECIFIED: OperationStatus
PENDING: OperationStatus
CANCELLED: OperationStatus
IN_BLOCK: OperationStatus
CONFIRMATION_LEVEL: OperationStatus
APPROVED: OperationStatus
REJECTED: OperationStatus

class SubscriptionFilter(_message.Message):
    __slots__ = ("type", "did_suffix", "credential_hash", "credential_batch_id", "statuses")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DID_SUFFIX_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_HASH_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    type: FilterType
    did_suffix: str
    credential_hash: bytes
    credential_batch_id: str
    statuses: _containers.RepeatedScalarFieldContainer[OperationOutcome]
    def __init__(self, type: _Optional[_Union[FilterType, str]] = ..., did_suffix: _Optional[str] = ..., credential_hash: _Optional[bytes] = ..., credential_batch_id: _Optional[str] = ..., statuses: _Optional[_Iterable[_Union[OperationOutcome, str]]] = ...) -> None: ...

class NewSubscriptionRequest(_message.Message):
    __slots__ = ("filters", "allow_operations_batches")
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_OPERATIONS_BATCHES_FIELD_NUMBER: _ClassVar[int]
    filters: _containers.RepeatedCompositeFieldContainer[SubscriptionFilter]
    allow_operations_batches: bool
    def __init__(self, filters: _Optional[_Iterable[_Union[SubscriptionFilter, _Mapping]]] = ..., allow_operations_batches: _Optional[bool] = ...) -> None: ...

class NewSubscriptionResponse(_message.Message):
    __slots__ = ("subscription_token", "events_after", "cursor")
    SUBSCRIPTION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EVENTS_AFTER_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    subscription_token: str
    events_after: bytes
    cursor: str
    def __init__(self, subscription_token: _Optional[str] = ..., events_after: _Optional[bytes] = ..., cursor: _Optional[str] = ...) -> None: ...

class GetSubscriptionEventsStreamRequest(_message.Message):
    __slots__ = ("subscription_token", "events_after", "cursor", "since_subscription")
    SUBSCRIPTION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EVENTS_AFTER_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    SINCE_SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    subscription_token: str
    events_after: bytes
    cursor: str
    since_subscription: bool
    def __init__(self, subscription_token: _Optional[str] = ..., events_after: _Optional[bytes] = ..., cursor: _Optional[str] = ..., since_subscription: _Optional[bool] = ...) -> None: ...

class SubscriptionEvents(_message.Message):
    __slots__ = ("events", "cursor", "live")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[SubscriptionEvent]
    cursor: str
    live: bool
    def __init__(self, events: _Optional[_Iterable[_Union[SubscriptionEvent, _Mapping]]] = ..., cursor: _Optional[str] = ..., live: _Optional[bool] = ...) -> None: ...

class SubscriptionEvent(_message.Message):
    __slots__ = ("operation_id", "seq_no", "type", "status", "reason", "did_suffix", "credential_batch_id", "signed_operation", "position", "storage_entry_id", "revokes_whole_batch")
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_NO_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DID_SUFFIX_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNED_OPERATION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    STORAGE_ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    REVOKES_WHOLE_BATCH_FIELD_NUMBER: _ClassVar[int]
    operation_id: bytes
    seq_no: int
    type: OperationType
    status: OperationOutcome
    reason: RejectReason
    did_suffix: str
    credential_batch_id: str
    signed_operation: bytes
    position: BlockPosition
    storage_entry_id: str
    revokes_whole_batch: bool
    def __init__(self, operation_id: _Optional[bytes] = ..., seq_no: _Optional[int] = ..., type: _Optional[_Union[OperationType, str]] = ..., status: _Optional[_Union[OperationOutcome, str]] = ..., reason: _Optional[_Union[RejectReason, str]] = ..., did_suffix: _Optional[str] = ..., credential_batch_id: _Optional[str] = ..., signed_operation: _Optional[bytes] = ..., position: _Optional[_Union[BlockPosition, _Mapping]] = ..., storage_entry_id: _Optional[str] = ..., revokes_whole_batch: _Optional[bool] = ...) -> None: ...

class BlockPosition(_message.Message):
    __slots__ = ("number", "hash", "object_index", "operation_index", "time")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    OBJECT_INDEX_FIELD_NUMBER: _ClassVar[int]
    OPERATION_INDEX_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    number: int
    hash: bytes
    object_index: int
    operation_index: int
    time: int
    def __init__(self, number: _Optional[int] = ..., hash: _Optional[bytes] = ..., object_index: _Optional[int] = ..., operation_index: _Optional[int] = ..., time: _Optional[int] = ...) -> None: ...

class CancelSubscriptionRequest(_message.Message):
    __slots__ = ("subscription_token",)
    SUBSCRIPTION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    subscription_token: str
    def __init__(self, subscription_token: _Optional[str] = ...) -> None: ...

class CancelSubscriptionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ScheduleOperationsRequest(_message.Message):
    __slots__ = ("signed_operations",)
    SIGNED_OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    signed_operations: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, signed_operations: _Optional[_Iterable[bytes]] = ...) -> None: ...

class ScheduleOperationsResponse(_message.Message):
    __slots__ = ("operation_ids", "cancel_token")
    OPERATION_IDS_FIELD_NUMBER: _ClassVar[int]
    CANCEL_TOKEN_FIELD_NUMBER: _ClassVar[int]
    operation_ids: _containers.RepeatedScalarFieldContainer[bytes]
    cancel_token: str
    def __init__(self, operation_ids: _Optional[_Iterable[bytes]] = ..., cancel_token: _Optional[str] = ...) -> None: ...

class CancelOperationRequest(_message.Message):
    __slots__ = ("operation_id", "cancel_token")
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    CANCEL_TOKEN_FIELD_NUMBER: _ClassVar[int]
    operation_id: bytes
    cancel_token: str
    def __init__(self, operation_id: _Optional[bytes] = ..., cancel_token: _Optional[str] = ...) -> None: ...

class CancelOperationResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetOperationStatusStreamRequest(_message.Message):
    __slots__ = ("operation_id",)
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    operation_id: bytes
    def __init__(self, operation_id: _Optional[bytes] = ...) -> None: ...

class OperationStatusUpdate(_message.Message):
    __slots__ = ("status", "confirmation_level", "reason", "position")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CONFIRMATION_LEVEL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    status: OperationStatus
    confirmation_level: int
    reason: RejectReason
    position: BlockPosition
    def __init__(self, status: _Optional[_Union[OperationStatus, str]] = ..., confirmation_level: _Optional[int] = ..., reason: _Optional[_Union[RejectReason, str]] = ..., position: _Optional[_Union[BlockPosition, _Mapping]] = ...) -> None: ...
