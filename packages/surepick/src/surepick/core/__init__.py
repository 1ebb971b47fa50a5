"""What all parts speak of: arms, designs, plans, observations, certificates, and how they become JSON and files."""
