"""Where the programs that tests start come from: a folder that is given, PATH, a package, or a build."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.jars import cache_folder, only_one

ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"
"""Names a folder with the programs, as envtest has it; a program that is not in it is looked for elsewhere."""

_TOOLS = Path(__file__).parent.parent / "cluster" / "tools"
_BUILD_TIMEOUT = 3600.0
_APT_TIMEOUT = 900.0


@dataclass(frozen=True, slots=True)
class GoModule:
    """Programs that one go.mod pins, and the packages that they are built from."""

    folder: Path
    packages: Mapping[str, str]
    version_of: str = ""
    version_in: tuple[str, ...] = ()
    """Variables that the linker sets to the version of the module `version_of`, as its own releases have it."""
    compiling: tuple[str, ...] = ()
    """What the compiler is told for each package."""

    @property
    def key(self) -> str:
        """Changes with whatever the build depends on, but not with the compiler."""
        own = sorted(each.name for each in self.folder.glob("main.go"))
        content = b"".join((self.folder / name).read_bytes() for name in ("go.mod", "go.sum", *own))
        how = (sorted(self.packages.items()), self.linking, *self.compiling)
        return hashlib.sha256(content + repr(how).encode()).hexdigest()[:16]

    @property
    def linking(self) -> str:
        """What the linker is told: no debug tables, and the version, which a plain build leaves at v0.0.0."""
        return " ".join(["-s -w", *(f"-X {variable}={self._version}" for variable in self.version_in)])

    @property
    def _version(self) -> str:
        required = rf"^(?:require)?\s+{re.escape(self.version_of)} (v\S+)"
        found = re.search(required, (self.folder / "go.mod").read_text(), re.MULTILINE)
        assert found is not None, f"{self.folder}/go.mod does not require {self.version_of}"
        return found[1]


KUBERNETES = GoModule(
    _TOOLS,
    {
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in (
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubelet",
            "kube-proxy",
            "kubectl",
        )
    },
    "k8s.io/kubernetes",
    # What the API server says of itself (Helm compares it with the chart's kubeVersion), and what its clients say.
    ("k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"),
)
HELM = GoModule(_TOOLS / "helm", {"helm": "helm.sh/helm/v3/cmd/helm"})
COREDNS = GoModule(_TOOLS / "coredns", {"coredns": "github.com/coredns/coredns"})
KSTATUS = GoModule(_TOOLS / "kstatus", {"kstatus": "."})
# It answers some thousand requests in its life: neither optimised nor with tables for debuggers, it is built in half of
# the processor's time.
S3_SERVER = GoModule(_TOOLS / "s3server", {"s3server": "."}, compiling=("-N", "-l", "-dwarf=false"))
_MODULES = (KUBERNETES, HELM, COREDNS, KSTATUS, S3_SERVER)

PACKAGES = {
    "etcd": "etcd-server",
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "crun": "crun",
    "iptables": "iptables",
    "iptables-save": "iptables",
    "conntrack": "conntrack",
    "buildah": "buildah",
    "debootstrap": "debootstrap",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "gcc": "gcc",
    "openssl": "openssl",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "chromium": "chromium",
    "chromedriver": "chromium-driver",
}
"""Debian's package of each program that is not built here."""

CNI_PACKAGE = "containernetworking-plugins"
CNI_FOLDER = Path("/usr/lib/cni")
_SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")


def program(name: str) -> Path:
    """The executable; installed with apt-get or built with Go when it is nowhere and this process may.

    Raises EnvironmentException that says what to install or which variable to set.
    """
    return find(name) or _obtain(name)


def find(name: str) -> Path | None:
    """The executable when it is here already, else None: KUBEBUILDER_ASSETS, then PATH, then the cache folder."""
    if (given := os.environ.get(ASSETS_VARIABLE)) and (there := Path(given) / name).is_file():
        return there.resolve()
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SYSTEM_FOLDERS))
    if on_path := shutil.which(name, path=path):
        return Path(on_path)
    module = _module_of(name)
    built = _place(module) / name if module else None
    return built if built is not None and built.is_file() else None


def lacking(*names: str) -> str | None:
    """Why these programs can't be had on this machine, or None when they are here or can be made."""
    for name in names:
        if find(name) is None and (reason := _why_not(name)):
            return reason
    return None


def install(*packages: str) -> None:
    """Install Debian packages, those that are missing. Raises EnvironmentException when this process may not."""
    if reason := _no_apt():
        raise EnvironmentException(f"{' and '.join(packages)} must be installed, and {reason}. Install it, then retry")
    _apt("update")
    _apt("install", "--yes", "--no-install-recommends", *packages)


def _why_not(name: str) -> str | None:
    if name in PACKAGES:
        return f"no {name}: Debian's package {PACKAGES[name]} is not installed, and {no}" if (no := _no_apt()) else None
    if _module_of(name) is None:
        return f"no {name} in {ASSETS_VARIABLE} or on PATH"
    if shutil.which("go") is None:
        return f"no {name} in {ASSETS_VARIABLE}, on PATH or in {cache_folder()}, and no Go on PATH to build it with"
    return None


def _obtain(name: str) -> Path:
    if reason := _why_not(name):
        raise EnvironmentException(f"{reason}. Install it, or let {ASSETS_VARIABLE} name a folder that has it")
    if name in PACKAGES:
        install(PACKAGES[name])
    elif module := _module_of(name):
        _build(module)
    if (found := find(name)) is None:
        raise EnvironmentException(f"{name} is still not there after it was installed. Look at PATH")
    return found


def _module_of(name: str) -> GoModule | None:
    return next((module for module in _MODULES if name in module.packages), None)


def _place(module: GoModule) -> Path:
    return cache_folder() / "kube" / f"{module.folder.name}-{module.key}"


def _build(module: GoModule) -> None:
    """Build all programs of a module; they appear in the cache folder by one rename."""
    place = _place(module)
    with only_one(place):
        if place.is_dir():
            return
        part = place.with_name(place.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        build = ("nice", "go", "build", "-trimpath", f"-ldflags={module.linking}")
        compiling = [f"-gcflags=all={' '.join(module.compiling)}"] if module.compiling else []
        command = [*build, *compiling, "-o", f"{part}/", *module.packages.values()]
        print(f"building {', '.join(module.packages)}; once, it takes minutes", flush=True)
        done = subprocess.run(
            command,
            cwd=module.folder,
            env={**os.environ, "CGO_ENABLED": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_BUILD_TIMEOUT,
            check=False,
        )
        if done.returncode != 0:
            raise EnvironmentException(
                f"`{' '.join(command)}` failed in {module.folder}:\n{done.stderr[-2000:]}\n"
                f"Correct that, or let {ASSETS_VARIABLE} name a folder with the programs"
            )
        part.rename(place)


@functools.cache
def _no_apt() -> str | None:
    if shutil.which("apt-get") is None:
        return "there is no apt-get to install it with"
    return None if os.geteuid() == 0 else "apt-get needs root"


def _apt(*arguments: str) -> None:
    # Package lists may be absent or old: an update that fails is told only when the installation fails too.
    done = subprocess.run(
        ["apt-get", "-o", "DPkg::Lock::Timeout=300", *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_APT_TIMEOUT,
        check=False,
    )
    if done.returncode != 0 and arguments[0] != "update":
        words = " ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise EnvironmentException(f"apt-get {' '.join(arguments)} failed: {words}. Install the packages by hand")
