"""Figures of what the theory predicts and what training measured; none can lie about what is a bound."""
