"""Points and times along a route."""
