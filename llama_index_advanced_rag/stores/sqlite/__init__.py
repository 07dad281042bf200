"""SQLite files: opening them, transactions, errors, and text that UTF-8 cannot hold."""
