"""A pytest plugin (`-p unshrunk`): of a property that fails, the example as it was found is enough."""

from hypothesis import Phase, settings

settings.register_profile("unshrunk", phases=[Phase.explicit, Phase.reuse, Phase.generate])
settings.load_profile("unshrunk")
