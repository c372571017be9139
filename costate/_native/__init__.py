"""The compiled core and what describes it: the parameter layout and the engine of each device."""
