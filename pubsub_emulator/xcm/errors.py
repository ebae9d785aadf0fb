"""The errors of this package: bytes that are not XCM, and a publish that the pallet refused."""

from pubsub_emulator.primitives.errors import PubsubError, ScaleError


class XcmDecodeError(ScaleError):
    """The bytes are not an XCM v5 message or a part of one (PS-20).

    `offset` is the position at which reading stopped.
    """

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.reason} (offset {self.offset})"


class UnsupportedXcmVersion(XcmDecodeError):
    """A `VersionedXcm` of a version that exists but is not supported here: V3 or V4."""

    def __init__(self, version: int) -> None:
        super().__init__(f"XCM version {version} is not supported", 0)
        self.version = version


class PublishFailure(PubsubError):
    """The pallet refused a `Publish`; `error` is the pallet's own error (PS-21)."""

    def __init__(self, error: PubsubError) -> None:
        super().__init__(error)
        self.error = error
