"""Training of the network that ships as `bundled/lacuna-tiny`; needs torch (the extra `gpu`)."""
