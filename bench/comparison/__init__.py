"""Parts of bench/compare; standard library only."""
