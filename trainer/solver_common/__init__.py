"""What several families share: tree models under a back end, warm starts, and lookups across families."""
