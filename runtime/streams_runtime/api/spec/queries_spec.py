"""The part of the resource that is about queries: who may ask, and whether the connection is encrypted."""

from __future__ import annotations

from pydantic import Field

from streams_runtime.api.spec.spec_model import Model


class TokenSecretRef(Model):
    """One key of a Secret in the application's namespace."""

    name: str = Field(min_length=1, description="Name of the Secret.")
    key: str = Field(default="token", min_length=1, description="The key whose value is the token.")


class TokenAccess(Model):
    """Whoever presents the token may ask."""

    secret_ref: TokenSecretRef = Field(description="Where the token is. A change of it needs no new pods.")


class KubernetesAccess(Model):
    """Whoever presents a token of the cluster may ask, if it is that of an account or of a group that is listed."""

    service_accounts: list[str] = Field(
        default_factory=list,
        description="Service accounts, as NAMESPACE/NAME, or NAME in the application's own namespace.",
    )
    groups: list[str] = Field(
        default_factory=list,
        description="Groups as the API server knows them. system:authenticated: every account of the cluster.",
    )
    audience: str | None = Field(
        default=None,
        min_length=1,
        description="The audience that tokens must be made for. Absent: the API server's own, and then whoever can"
        " read this instance's memory can use the tokens elsewhere.",
    )


class QueryAccess(Model):
    """Who may ask: exactly one way of telling."""

    token: TokenAccess | None = Field(default=None, description="A bearer token that is kept in a Secret.")
    kubernetes: KubernetesAccess | None = Field(
        default=None, description="Tokens of the cluster, which the API server reviews (TokenReview)."
    )


class TlsSecretRef(Model):
    """A Secret of the type kubernetes.io/tls in the application's namespace."""

    name: str = Field(min_length=1, description="Name of the Secret, with the keys tls.crt and tls.key.")


class QueryTls(Model):
    """Encryption of queries, probes and everything else that an instance answers."""

    secret_ref: TlsSecretRef = Field(description="Certificate and key. A renewal of them needs no new pods.")


class QueriesSpec(Model):
    """Queries over HTTP."""

    access: QueryAccess | None = Field(
        default=None, description="Who may ask. Absent: everybody who reaches the instances' port."
    )
    tls: QueryTls | None = Field(default=None, description="HTTPS instead of HTTP. Absent: not encrypted.")
