"""What a topology makes of records, in plain Python: the rules of each step, one record after the other.

`Model` takes an application's document and records, and says what its sinks and stores have to hold. It has no Spark,
no store, no index and no batches of columns: everything is a dict or a list, and most of it is looked through from the
beginning. Expressions are evaluated from their text (`expressions`), so a document is all that it needs.

Steps follow Kafka Streams record by record; where runtime/guide/ names a difference, they follow that.
"""

from steps_model.items import Change, Given, Row, Written
from steps_model.model import Model

__all__ = ["Change", "Given", "Model", "Row", "Written"]
