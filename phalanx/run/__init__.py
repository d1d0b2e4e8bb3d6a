"""Running programs: arrays that hold data, compiled programs, eager evaluation."""
