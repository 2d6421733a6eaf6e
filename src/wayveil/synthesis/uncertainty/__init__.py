"""How uncertain estimates from a release are, and what data made from it is good for."""
