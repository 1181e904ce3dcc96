"""The part of the resource that says who may reach its pods."""

from __future__ import annotations

from pydantic import Field

from streams_runtime.api.spec.selectors_spec import LabelSelectorSpec
from streams_runtime.api.spec.spec_model import Model


class IpBlock(Model):
    """A range of addresses."""

    cidr: str = Field(description="The range, such as 10.1.0.0/16.")
    except_: list[str] = Field(default_factory=list, alias="except", description="Ranges within it that are left out.")


class NetworkPeer(Model):
    """Who may: pods by their labels and by those of their namespaces, or addresses."""

    pod_selector: LabelSelectorSpec | None = Field(
        default=None, description="Which pods. Absent beside namespaceSelector: all of the namespaces."
    )
    namespace_selector: LabelSelectorSpec | None = Field(
        default=None, description="Of which namespaces. Absent: of the application's own."
    )
    ip_block: IpBlock | None = Field(default=None, description="Addresses outside of the cluster; alone in its entry.")


class NetworkPolicySpec(Model):
    """Who may reach the pods, by Kubernetes' NetworkPolicy. What pods themselves reach is not limited."""

    enabled: bool = Field(default=False, description="Whether there is a policy. false: everybody may reach the pods.")
    from_: list[NetworkPeer] = Field(
        default_factory=list,
        alias="from",
        description="Who may reach the query server and its metrics, beside the application's own pods and the"
        " operator.",
    )
