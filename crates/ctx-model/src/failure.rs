//! Converts a provider's refusal to an [`Error`]: its meaning, whether to retry, and when.

use std::time::{Duration, SystemTime};

use ctx_core::text::clip;
use ctx_core::{Error, ErrorKind};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use crate::overflow::{Overflow, overflow_of};
use crate::provider_error::ErrorText;
use crate::{KeyRef, Secret};

/// Maximum bytes read of an error body. Providers send a few hundred.
pub(crate) const LONGEST_BODY: usize = 64 * 1024;

/// Maximum characters of the provider's message in an error.
const SHOWN_CHARS: usize = 400;

/// Maximum delay; a longer one amounts to giving up.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Words that indicate an exhausted quota. Waiting does not help.
const QUOTA: [&str; 6] = [
    "insufficient_quota",
    "current quota",
    "insufficient balance",
    "insufficient credit",
    "requires more credits",
    "credit balance is too low",
];

/// Words that indicate an unknown model, for providers that answer with status 400.
const NO_MODEL: [&str; 6] = [
    "model_not_found",
    "model not found",
    "invalid model",
    "unknown model",
    "not a valid model",
    "model does not exist",
];

/// The model and its credentials, for error messages. The secrets are removed from all messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorContext<'a> {
    /// `provider/model`.
    pub(crate) name: &'a str,
    pub(crate) key: Option<&'a KeyRef>,
    pub(crate) secrets: &'a [Secret],
}

impl ErrorContext<'_> {
    /// Returns the error of a refused request, or, with empty headers, of an error inside a stream.
    pub(crate) fn failure(
        &self,
        status: u16,
        headers: &HeaderMap,
        error_text: &ErrorText,
    ) -> Error {
        let overflow =
            overflow_of(status, error_text).or_else(|| too_much_at_once(status, error_text));
        let wait = retry_after(headers, SystemTime::now()).or_else(|| error_text.wait());
        let wait = wait.map(|wait| wait.min(LONGEST_WAIT));
        let error = match overflow {
            Some(found) => self.overflow(&found),
            None => self.refused(status, error_text, wait),
        };
        let error = error.with("model", self.name);
        let error = if status >= 400 { error.with("status", status) } else { error };
        let error = if (400..500).contains(&status) { error.unbilled() } else { error };
        let error = match error_text.message() {
            Some(message) => error.with("provider says", self.shown(message)),
            None => error,
        };
        match request_id(headers) {
            Some(id) => error.with("request", self.shown(id)),
            None => error,
        }
    }

    /// Returns the error of a prompt that is too long.
    pub(crate) fn overflow(&self, found: &Overflow) -> Error {
        let (what, hint) = match found.pattern {
            PER_MINUTE => (
                "the request exceeds the account's tokens per minute",
                "send less at once, use another model, or raise the limit at the provider",
            ),
            _ => (
                "the prompt is too long for the model",
                "send less, or use a model with a larger window",
            ),
        };
        let mut error = Error::new(ErrorKind::Overflow, what);
        if let Some(used) = found.used {
            error = error.with("tokens", used);
        }
        if let Some(limit) = found.limit {
            error = error.with("limit", limit);
        }
        error.with("recognised by", found.pattern).hint(hint)
    }

    fn refused(&self, status: u16, error_text: &ErrorText, wait: Option<Duration>) -> Error {
        let capability = |what: &'static str| Error::new(ErrorKind::Capability, what);
        let upstream = |what: &'static str| Error::new(ErrorKind::Upstream, what);
        let retry = |error: Error| match wait {
            Some(wait) => error.retry_after(wait),
            None => error.retryable(),
        };
        let empty_account = status == 402 || error_text.says(&QUOTA);
        match status {
            _ if empty_account => capability("no credit left at the provider")
                .hint("add credit at the provider, or use another model"),
            401 | 403 => capability("the provider rejected the key").hint(self.check_key()),
            404 => capability("model or URL unknown to the provider")
                .hint("check the model's name and the provider's base URL"),
            400 | 422 if error_text.says(&NO_MODEL) => {
                capability("model unknown to the provider").hint("check the model's name")
            }
            413 | 429 => {
                retry(upstream("the provider's rate limit is reached")).hint("try again later")
            }
            408 | 409 | 425 => retry(upstream("the provider was not ready")).hint("try again"),
            501 => capability("the provider does not offer this")
                .hint("check the api of the provider: it must match the server"),
            500..=599 => retry(upstream("the provider failed")).hint("try again later"),
            _ => upstream("the provider refused the request")
                .hint("see the provider's message, and check its api in ctx.json5"),
        }
    }

    fn check_key(&self) -> String {
        match self.key {
            Some(KeyRef::Literal(_)) => "check apiKey of the provider in ctx.json5".to_owned(),
            Some(key) => format!("check the key in {key}"),
            None => {
                let provider = self.name.split('/').next().unwrap_or_default();
                let known = crate::known_providers::provider(provider)
                    .and_then(|known| known.key.as_deref());
                let export = known.map(|name| format!("export {name}, or ")).unwrap_or_default();
                format!(
                    "no key was sent: {export}set models.providers.{provider}.apiKey in ctx.json5"
                )
            }
        }
    }

    /// Returns a provider's message, shortened, without secrets and control characters.
    pub(crate) fn shown(&self, text: &str) -> String {
        let text = self.secrets.iter().fold(text.to_owned(), |text, secret| secret.hide_in(text));
        clip(&text, SHOWN_CHARS).replace(char::is_control, " ")
    }
}

/// The pattern name of a request that exceeds the account's tokens per minute.
const PER_MINUTE: &str = "per-minute";

/// Recognises a single request that exceeds the account's limit per minute: `Limit 6000, Requested
/// 14368`. Waiting does not help, but a shorter prompt does, so it is an overflow.
fn too_much_at_once(status: u16, error_text: &ErrorText) -> Option<Overflow> {
    if !matches!(status, 413 | 429) || error_text.says(&QUOTA) {
        return None;
    }
    error_text.texts().find_map(|text| {
        let text = text.to_lowercase();
        let number_after = |word: &str| -> Option<u64> {
            let rest = text.split_once(word)?.1.trim_start();
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        };
        let (limit, used) = number_after("limit ").zip(number_after("requested "))?;
        (used > limit).then_some(Overflow {
            used: Some(used),
            limit: Some(limit),
            pattern: PER_MINUTE,
            provider: "any",
            ..Overflow::default()
        })
    })
}

/// Returns the delay the server asks for: `retry-after-ms`, or `retry-after` in seconds or as a
/// date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
    let millis = text("retry-after-ms").and_then(|ms| seconds(ms.parse::<f64>().ok()? / 1e3));
    millis.or_else(|| {
        let after = text(RETRY_AFTER.as_str())?;
        if let Ok(number) = after.parse::<f64>() {
            return seconds(number);
        }
        let date = |text: &str| {
            let date = jiff::fmt::rfc2822::parse(text).ok()?;
            Some(SystemTime::from(date.timestamp()))
        };
        // Uses the server's clock if it sends its date.
        let now = text(DATE.as_str()).and_then(date).unwrap_or(now);
        Some(date(after)?.duration_since(now).unwrap_or_default())
    })
}

fn request_id(headers: &HeaderMap) -> Option<&str> {
    ["x-request-id", "request-id"].into_iter().find_map(|name| headers.get(name)?.to_str().ok())
}
