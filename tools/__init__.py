"""Programs for the people who work on git relay; nothing here is installed."""
