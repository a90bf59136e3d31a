//! Provider JSON (OpenAI chat and responses, Anthropic, pi) to ctx messages and back.
