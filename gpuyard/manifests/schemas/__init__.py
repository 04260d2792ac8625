"""What the API server would refuse: the schemas of built-in and custom kinds, and what schemas do not say."""
