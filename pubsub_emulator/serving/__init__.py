"""What every HTTP server here has in common: who may call, and how long a body may take."""
