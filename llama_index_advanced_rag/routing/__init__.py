"""Which way to answer a question: routes, routers that choose among them, and what comes of their choice."""
