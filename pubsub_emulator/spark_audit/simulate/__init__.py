"""Simulations: many generated networks with cheats, and the truth about the cheats, for audits."""
