//! Slots, registration, configuration and the layered engine.
