"""The output's tables: parts packed from results, their Delta logs, and SQL over them."""
