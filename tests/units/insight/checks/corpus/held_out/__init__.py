"""Programs after training scripts, by others who had not seen the analyses."""
