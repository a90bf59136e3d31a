//! A ctx error in the client's protocol.

use ctx_core::{Error, ErrorKind};

use super::{Protocol, Route};
use crate::json::ObjectWriter;

/// Returns the body of an error response in the format of the API: the error message and its hint.
/// An overflow has the wording and code by which clients recognise it. For Anthropic clients,
/// `error_code` in the error's context is copied to `details`.
#[must_use]
pub fn error_body(route: &Route, status: u16, error: &Error) -> String {
    let is_overflow = matches!(
        error.kind(),
        ErrorKind::Overflow | ErrorKind::SystemPromptTooLarge | ErrorKind::CompactionFailure
    );
    let text = match error.hint_text() {
        Some(hint) => format!("{error}. {hint}"),
        None => error.to_string(),
    };
    match route.protocol {
        _ if route.is_bedrock => {
            // The words of Bedrock.
            let overflow = "Input is too long for requested model: ";
            let text = if is_overflow { format!("{overflow}{text}") } else { text };
            ObjectWriter::new().text("message", &text).end()
        }
        _ if route.is_ollama => ObjectWriter::new().text("error", &text).end(),
        Protocol::Chat | Protocol::Responses => {
            let code = match (is_overflow, status) {
                (true, _) => "context_length_exceeded",
                (false, 401) => "invalid_api_key",
                (false, 429) => "rate_limit_exceeded",
                _ => error.kind().name(),
            };
            let error = ObjectWriter::new()
                .text("message", &text)
                .text("type", openai_type(status))
                .raw("param", "null")
                .text("code", code);
            ObjectWriter::new().raw("error", error.end()).end()
        }
        Protocol::Messages | Protocol::Converse => {
            let text = if is_overflow { format!("prompt is too long: {text}") } else { text };
            let mut body =
                ObjectWriter::new().text("type", anthropic_type(status)).text("message", &text);
            if let Some((key, code)) = error.context().iter().find(|(key, _)| *key == "error_code")
            {
                body = body.raw("details", ObjectWriter::new().text(key, code).end());
            }
            ObjectWriter::new().text("type", "error").raw("error", body.end()).end()
        }
        Protocol::Gemini => {
            let text = match is_overflow {
                true => format!("The input token count exceeds what the model takes: {text}"),
                false => text,
            };
            let error = ObjectWriter::new()
                .plain("code", status)
                .text("message", &text)
                .text("status", google_status(status))
                .end();
            ObjectWriter::new().raw("error", error).end()
        }
    }
}

fn openai_type(status: u16) -> &'static str {
    match status {
        429 => "requests",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

fn google_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}
