"""Files in an object store that are created only if no file has their name.

pyarrow cannot send the condition (`If-None-Match: *`, at Google a generation of 0), so obstore
sends these requests. Everything else goes through pyarrow: it also knows Hadoop, and all the ways
in which AWS's own tools find credentials. obstore itself knows the variables of the environment and
the services of Amazon's machines; for profiles it asks boto3.
"""

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlsplit

from pubsub_emulator.spark_audit.history.address import StorageError

_SCHEMES: Final = {"s3": "S3Store", "s3a": "S3Store", "gs": "GCSStore", "gcs": "GCSStore"}
"""The classes of obstore by the scheme of an address."""
_TIMEOUTS: Final = {"connect_timeout": "10s", "timeout": "60s"}
_RETRIES: Final = {"max_retries": 3}

Create = Callable[[str, bytes], bool]
"""Writes a file below an address unless it exists, and returns whether it was written."""


def creator(uri: str) -> Create | None:
    """Return the function that creates files below an address.

    Returns `None` for storage that knows no such condition (`hdfs://`). The function raises
    `OSError`, and `ModuleNotFoundError` if obstore is not installed.
    """
    parts = urlsplit(uri)
    if parts.scheme not in _SCHEMES:
        return None
    base = parts.path.strip("/")

    @cache
    def bucket() -> Any:
        """Connect once, when the first file is created."""
        return _bucket(parts.scheme, parts.netloc)

    def create(path: str, data: bytes) -> bool:
        full = f"{base}/{path}" if base else path
        obstore = import_module("obstore")
        exceptions = import_module("obstore.exceptions")
        try:
            obstore.put(bucket(), full, data, mode="create")
        except exceptions.AlreadyExistsError:
            return False
        except (OSError, exceptions.BaseError) as error:
            # The first line, without the document with which a server explains itself.
            said = str(error).splitlines()[0].partition(": <?xml")[0]
            raise OSError(f"{path}: {said}") from None
        return True

    return create


def _bucket(scheme: str, name: str) -> Any:
    """Return a bucket as the environment configures it. Raises `StorageError`."""
    store = getattr(import_module("obstore.store"), _SCHEMES[scheme])
    options: dict[str, Any] = {"client_options": dict(_TIMEOUTS), "retry_config": dict(_RETRIES)}
    if _SCHEMES[scheme] == "S3Store":
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        if endpoint:
            options["endpoint"] = endpoint if "://" in endpoint else f"https://{endpoint}"
            options["client_options"]["allow_http"] = endpoint.startswith("http://")
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        options["region"] = region or "us-east-1"
        if "AWS_ACCESS_KEY_ID" not in os.environ and "AWS_PROFILE" in os.environ:
            options["credential_provider"] = _of_profile()
    return store(name, **options)


def _of_profile() -> Any:
    """Return credentials of the profile that `AWS_PROFILE` names. Raises `StorageError`."""
    try:
        return import_module("obstore.auth.boto3").Boto3CredentialProvider()
    except ModuleNotFoundError:
        raise StorageError(
            "the credentials of AWS_PROFILE need boto3: `pip install boto3`"
        ) from None
