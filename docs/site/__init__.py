"""What the site has beyond Sphinx: a search over sections."""
