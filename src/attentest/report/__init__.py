"""What a store says, laid beside what was published. No torch here."""
