"""The public names of the runtime; `runtime/guide/api.md` lists them.

A name is loaded when it is first asked for (PEP 562), so that importing the package, or a light part of it, loads
neither Spark nor a Kafka client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streams_runtime.api import StreamsApplication, load_application, parse_application
    from streams_runtime.builder import (
        BranchedKStream,
        GlobalKTable,
        KGroupedStream,
        KGroupedTable,
        KStream,
        KTable,
        StreamsBuilder,
        WindowedKStream,
        hopping,
        json,
        protobuf,
        session,
        sliding,
        tumbling,
    )
    from streams_runtime.client import StreamsClient
    from streams_runtime.errors import (
        BrokerNotAvailableException,
        ConfigException,
        DeserializationException,
        EnvironmentException,
        FailedProcessingException,
        FatalStateStoreException,
        IllegalStateException,
        InternalTopicsAlreadySetupException,
        InvalidApplicationException,
        InvalidStateStoreException,
        InvalidStateStorePartitionException,
        LockException,
        MisconfiguredInternalTopicException,
        MissingInternalTopicException,
        MissingInternalTopicsException,
        MissingSourceTopicException,
        Mistake,
        NotSupportedException,
        NotUpToBoundException,
        ProcessorStateException,
        ProducerException,
        ProducerFencedException,
        RetryableStateStoreException,
        SchemaRegistryException,
        SchemaRegistryNotAvailableException,
        ShutdownRequestedException,
        StateStoreMigratedException,
        StateStoreNotAvailableException,
        StoreTypeMismatch,
        StreamsException,
        StreamsNotStartedException,
        StreamsRebalancingException,
        TaskCorruptedException,
        TaskMigratedException,
        TimeoutException,
        TopologyException,
        UnknownStateStoreException,
        UnreleasedInstanceIdException,
        UserCodeException,
    )
    from streams_runtime.kafka.types import TopicPartition
    from streams_runtime.lifecycle.uncaught import UncaughtExceptionHandler, UncaughtExceptionResponse
    from streams_runtime.processing.failures.error_policy import FailedRecord
    from streams_runtime.processors.user_processors.processor_context import ProcessorContext
    from streams_runtime.processors.user_processors.processor_records import ProcessorRecord, PunctuationType
    from streams_runtime.query.client.query_client import QueryCredentials, Records, StreamsQueryClient
    from streams_runtime.query.server.access import QueryGuard, TokenGate
    from streams_runtime.query.server.tls import TlsFiles
    from streams_runtime.query.stores.key_value_handle import (
        KeyValue,
        KeyValueIterator,
        ReadOnlyKeyValueStore,
        ReadOnlySessionStore,
        ReadOnlyStore,
        ReadOnlyWindowStore,
        StoreQueryParameters,
        VersionedRecord,
        Window,
        Windowed,
        WindowStoreIterator,
    )
    from streams_runtime.query.stores.views import StoreType
    from streams_runtime.query.wire.problems import (
        AccessNotCheckedException,
        IncompleteAnswerException,
        InstanceNotReachableException,
        InvalidQueryException,
        QueryForbiddenException,
        QueryNotAuthenticatedException,
    )
    from streams_runtime.restore.restore_listener import StandbyUpdateListener, StateRestoreListener, SuspendReason
    from streams_runtime.settings import InstanceSettings
    from streams_runtime.state.serdes import SerdeException
    from streams_runtime.states import ClientState, StateListener
    from streams_runtime.testing import START, InputTopic, OutputTopic, Record, TopologyTestDriver, spark_session
    from streams_runtime.topics.setup_policy import InitParameters

__all__ = [
    "START",
    "AccessNotCheckedException",
    "BranchedKStream",
    "BrokerNotAvailableException",
    "ClientState",
    "ConfigException",
    "DeserializationException",
    "EnvironmentException",
    "FailedProcessingException",
    "FailedRecord",
    "FatalStateStoreException",
    "GlobalKTable",
    "IllegalStateException",
    "IncompleteAnswerException",
    "InitParameters",
    "InputTopic",
    "InstanceNotReachableException",
    "InstanceSettings",
    "InternalTopicsAlreadySetupException",
    "InvalidApplicationException",
    "InvalidQueryException",
    "InvalidStateStoreException",
    "InvalidStateStorePartitionException",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "KeyValue",
    "KeyValueIterator",
    "LockException",
    "MisconfiguredInternalTopicException",
    "MissingInternalTopicException",
    "MissingInternalTopicsException",
    "MissingSourceTopicException",
    "Mistake",
    "NotSupportedException",
    "NotUpToBoundException",
    "OutputTopic",
    "ProcessorContext",
    "ProcessorRecord",
    "ProcessorStateException",
    "ProducerException",
    "ProducerFencedException",
    "PunctuationType",
    "QueryCredentials",
    "QueryForbiddenException",
    "QueryGuard",
    "QueryNotAuthenticatedException",
    "ReadOnlyKeyValueStore",
    "ReadOnlySessionStore",
    "ReadOnlyStore",
    "ReadOnlyWindowStore",
    "Record",
    "Records",
    "RetryableStateStoreException",
    "SchemaRegistryException",
    "SchemaRegistryNotAvailableException",
    "SerdeException",
    "ShutdownRequestedException",
    "StandbyUpdateListener",
    "StateListener",
    "StateRestoreListener",
    "StateStoreMigratedException",
    "StateStoreNotAvailableException",
    "StoreQueryParameters",
    "StoreType",
    "StoreTypeMismatch",
    "StreamsApplication",
    "StreamsBuilder",
    "StreamsClient",
    "StreamsException",
    "StreamsNotStartedException",
    "StreamsQueryClient",
    "StreamsRebalancingException",
    "SuspendReason",
    "TaskCorruptedException",
    "TaskMigratedException",
    "TimeoutException",
    "TlsFiles",
    "TokenGate",
    "TopicPartition",
    "TopologyException",
    "TopologyTestDriver",
    "UncaughtExceptionHandler",
    "UncaughtExceptionResponse",
    "UnknownStateStoreException",
    "UnreleasedInstanceIdException",
    "UserCodeException",
    "VersionedRecord",
    "Window",
    "WindowStoreIterator",
    "Windowed",
    "WindowedKStream",
    "hopping",
    "json",
    "load_application",
    "parse_application",
    "protobuf",
    "session",
    "sliding",
    "spark_session",
    "tumbling",
]

_NAMES = {
    ".api": "StreamsApplication load_application parse_application",
    ".builder": (
        "BranchedKStream GlobalKTable KGroupedStream KGroupedTable KStream KTable StreamsBuilder WindowedKStream "
        "hopping json protobuf session sliding tumbling"
    ),
    ".client": "StreamsClient",
    ".errors": (
        "StreamsException ConfigException Mistake InvalidApplicationException NotSupportedException "
        "TopologyException EnvironmentException BrokerNotAvailableException SchemaRegistryNotAvailableException "
        "SchemaRegistryException UnreleasedInstanceIdException MissingSourceTopicException "
        "MissingInternalTopicException MissingInternalTopicsException MisconfiguredInternalTopicException "
        "InternalTopicsAlreadySetupException FailedProcessingException UserCodeException "
        "DeserializationException ProducerException TaskMigratedException ProducerFencedException LockException "
        "ProcessorStateException TaskCorruptedException ShutdownRequestedException TimeoutException "
        "IllegalStateException StoreTypeMismatch InvalidStateStoreException RetryableStateStoreException "
        "FatalStateStoreException StreamsNotStartedException StreamsRebalancingException "
        "StateStoreMigratedException NotUpToBoundException StateStoreNotAvailableException UnknownStateStoreException "
        "InvalidStateStorePartitionException"
    ),
    ".kafka.types": "TopicPartition",
    ".lifecycle.uncaught": "UncaughtExceptionHandler UncaughtExceptionResponse",
    ".processing.failures.error_policy": "FailedRecord",
    ".processors.user_processors.processor_context": "ProcessorContext",
    ".processors.user_processors.processor_records": "ProcessorRecord PunctuationType",
    ".query.client.query_client": "QueryCredentials Records StreamsQueryClient",
    ".query.server.access": "QueryGuard TokenGate",
    ".query.server.tls": "TlsFiles",
    ".query.stores.key_value_handle": (
        "KeyValue KeyValueIterator ReadOnlyKeyValueStore ReadOnlySessionStore ReadOnlyStore ReadOnlyWindowStore "
        "StoreQueryParameters VersionedRecord Window Windowed WindowStoreIterator"
    ),
    ".query.stores.views": "StoreType",
    ".query.wire.problems": (
        "AccessNotCheckedException IncompleteAnswerException InstanceNotReachableException InvalidQueryException "
        "QueryForbiddenException QueryNotAuthenticatedException"
    ),
    ".restore.restore_listener": "StandbyUpdateListener StateRestoreListener SuspendReason",
    ".settings": "InstanceSettings",
    ".state.serdes": "SerdeException",
    ".states": "ClientState StateListener",
    ".testing": "START InputTopic OutputTopic Record TopologyTestDriver spark_session",
    ".topics.setup_policy": "InitParameters",
}
"""The names by the modules that have them, from this package on."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


if not TYPE_CHECKING:  # where types are checked an unknown name is a mistake, and a `__getattr__` would hide it

    def __getattr__(name: str) -> object:
        """Load a public name. Raises AttributeError for any other one."""
        module = _MODULES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}; runtime/guide/api.md lists its names")
        found: object = getattr(import_module(module, __name__), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        """The public names, and what every module has."""
        return sorted({*globals(), *__all__})
