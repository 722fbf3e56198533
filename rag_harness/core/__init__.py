"""The core: types, errors, protocols, settings, the registry of parts, files, text and processes."""
