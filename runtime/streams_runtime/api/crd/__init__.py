"""The CustomResourceDefinition and the reference of its fields, generated from the models: `make crd`."""
