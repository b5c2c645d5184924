"""All good trees (the Rashomon set): counted, listed, sampled and summarised."""
