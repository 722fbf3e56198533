"""Knowledge bases: checked, and later planned and generated."""
