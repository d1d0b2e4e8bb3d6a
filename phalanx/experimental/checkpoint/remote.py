"""Addresses in object stores, as ``s3://bucket/run`` and ``gs://bucket/run``, and their errors."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_ADDRESS = re.compile(r"(s3|gs)://([^/?#]+)/*([^?#]*)")
_DRIVERS = {"s3": "s3", "gs": "gcs"}  # of tensorstore
_RETRIES = {"max_retries": 6, "initial_delay": "500ms", "max_delay": "8s"}  # half a minute in all
_REFUSED = re.compile("PERMISSION_DENIED|UNAUTHENTICATED")
_SILENT = re.compile("ABORTED|UNAVAILABLE|DEADLINE_EXCEEDED")


class Remote(Struct, frozen=True):
    """A folder of a store: those of its objects whose names begin so."""

    scheme: str
    bucket: str
    path: str = ""

    @classmethod
    def of(cls, address: str) -> Remote | None:
        """The folder at an address; None if it is none of a store that is known.

        >>> str(Remote.of("s3://ours/runs//a/") / "step-1"), Remote.of("ftp://ours/runs")
        ('s3://ours/runs/a/step-1', None)
        """
        found = _ADDRESS.fullmatch(address)
        if found is None:
            return None
        scheme, bucket, path = found.groups()
        return cls(scheme, bucket, "/".join(filter(None, path.split("/"))))

    def __str__(self) -> str:
        return "/".join(filter(None, (f"{self.scheme}://{self.bucket}", self.path)))

    def __fspath__(self) -> str:
        return str(self)

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    def __truediv__(self, name: str) -> Remote:
        return Remote(self.scheme, self.bucket, f"{self.path}/{name}".lstrip("/"))

    def kvstore(self, env: Mapping[str, str] = os.environ) -> dict[str, Any]:
        """What tensorstore needs to know; the server of S3 as tools of AWS are told of it."""
        driver = _DRIVERS[self.scheme]
        spec: dict[str, Any] = {"driver": driver, "bucket": self.bucket}
        if self.path:
            spec["path"] = f"{self.path}/"
        if driver == "s3":
            names = {
                "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
                "aws_region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
            }
            for field, variables in names.items():
                values = [env[name] for name in variables if env.get(name)]
                spec |= {field: values[0]} if values else {}
        return spec | {"context": {f"{driver}_request_retries": _RETRIES}}

    def refusal(self, message: str, doing: str) -> OSError | None:
        """The error of a store that refuses or does not answer; None for one of something else."""
        short = message.partition(" [")[0]
        if _SILENT.match(message):
            number, why = errno.ETIMEDOUT, "the store does not answer"
        elif _REFUSED.match(message):
            number, why = errno.EACCES, "the store refuses; are there credentials for it?"
        else:
            return None
        return OSError(number, f"checkpoint: {doing}: {why} ({short})", str(self))
