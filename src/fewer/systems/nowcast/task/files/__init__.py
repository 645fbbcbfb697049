"""Files of satellites, radars and the competition."""
