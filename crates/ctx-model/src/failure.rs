//! From a provider's refusal to an [`Error`]: what it means, whether to try again, and when.

use std::time::{Duration, SystemTime};

use ctx_core::{Error, ErrorKind};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use crate::overflow::{Overflow, overflow_of};
use crate::provider_error::ErrorText;
use crate::{KeyRef, Secret};

/// No error body is read further. Those of providers have a few hundred bytes.
pub(crate) const LONGEST_BODY: usize = 64 * 1024;

/// How much of the provider's words goes into an error.
const SHOWN_CHARS: usize = 400;

/// Longer waits than this are no better than giving up.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Words of an account that is empty: waiting does not help.
const QUOTA: [&str; 6] = [
    "insufficient_quota",
    "current quota",
    "insufficient balance",
    "insufficient credit",
    "requires more credits",
    "credit balance is too low",
];

/// Words of a model that is not there, where the status is that of a bad request.
const NO_MODEL: [&str; 6] = [
    "model_not_found",
    "model not found",
    "invalid model",
    "unknown model",
    "not a valid model",
    "model does not exist",
];

/// Who was asked, for the words of an error. The secrets are taken out of all that is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// `provider/model`.
    pub(crate) name: &'a str,
    pub(crate) key: Option<&'a KeyRef>,
    pub(crate) secrets: &'a [Secret],
}

impl Asked<'_> {
    /// The error of a refused request, or, with empty headers, of an error inside a stream.
    pub(crate) fn failure(&self, status: u16, headers: &HeaderMap, said: &ErrorText) -> Error {
        let overflow = overflow_of(status, said).or_else(|| too_much_at_once(status, said));
        let wait = retry_after(headers, SystemTime::now()).or_else(|| said.wait());
        let wait = wait.map(|wait| wait.min(LONGEST_WAIT));
        let error = match overflow {
            Some(found) => self.overflow(&found),
            None => self.refused(status, said, wait),
        };
        let error = error.with("model", self.name);
        let error = if status >= 400 { error.with("status", status) } else { error };
        let error = if (400..500).contains(&status) { error.unbilled() } else { error };
        let error = match said.message() {
            Some(message) => error.with("provider says", self.shown(message)),
            None => error,
        };
        match request_id(headers) {
            Some(id) => error.with("request", self.shown(id)),
            None => error,
        }
    }

    /// The prompt is too long.
    pub(crate) fn overflow(&self, found: &Overflow) -> Error {
        let (what, hint) = match found.pattern {
            PER_MINUTE => (
                "one request is over the account's tokens per minute",
                "send less at once, take another model, or raise the limit at the provider",
            ),
            _ => (
                "the prompt is too long for the model",
                "send less, or take a model with a larger window",
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

    fn refused(&self, status: u16, said: &ErrorText, wait: Option<Duration>) -> Error {
        let capability = |what: &'static str| Error::new(ErrorKind::Capability, what);
        let upstream = |what: &'static str| Error::new(ErrorKind::Upstream, what);
        let retry = |error: Error| match wait {
            Some(wait) => error.retry_after(wait),
            None => error.retryable(),
        };
        let empty_account = status == 402 || said.says(&QUOTA);
        match status {
            _ if empty_account => capability("the account at the provider is empty")
                .hint("add credit at the provider, or take another model"),
            401 | 403 => capability("the provider does not accept the key").hint(self.check_key()),
            404 => capability("the provider knows no such model or address")
                .hint("check the model's name and the provider's base URL"),
            400 | 422 if said.says(&NO_MODEL) => {
                capability("the provider knows no such model").hint("check the model's name")
            }
            413 | 429 => {
                retry(upstream("the provider's rate limit is reached")).hint("try again later")
            }
            408 | 409 | 425 => retry(upstream("the provider was not ready")).hint("try again"),
            501 => capability("the provider does not offer this")
                .hint("check the api of the provider: it must be what the server speaks"),
            500..=599 => retry(upstream("the provider failed")).hint("try again later"),
            _ => upstream("the provider refused the request")
                .hint("see what the provider says, and check its api in ctx.json5"),
        }
    }

    fn check_key(&self) -> String {
        match self.key {
            Some(KeyRef::Literal(_)) => "check apiKey of the provider in ctx.json5".to_owned(),
            Some(key) => format!("check the key in {key}"),
            None => {
                let provider = self.name.split('/').next().unwrap_or_default();
                let known = crate::known::provider(provider).and_then(|known| known.key);
                let export = known.map(|name| format!("export {name}, or ")).unwrap_or_default();
                format!(
                    "no key was sent: {export}set models.providers.{provider}.apiKey in ctx.json5"
                )
            }
        }
    }

    /// A provider's words, without secrets and control characters, and not too many.
    pub(crate) fn shown(&self, text: &str) -> String {
        let text = self.secrets.iter().fold(text.to_owned(), |text, secret| secret.hide_in(text));
        let mut shown: String =
            text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_CHARS).collect();
        if text.chars().nth(SHOWN_CHARS).is_some() {
            shown.push('…');
        }
        shown
    }
}

/// What recognises a request that is larger than the account's tokens per minute.
const PER_MINUTE: &str = "per-minute";

/// A single request that is larger than what the account may send in a minute: `Limit 6000,
/// Requested 14368`. No wait makes it pass, but less text does, so it is a prompt that is too long.
fn too_much_at_once(status: u16, said: &ErrorText) -> Option<Overflow> {
    if !matches!(status, 413 | 429) || said.says(&QUOTA) {
        return None;
    }
    said.texts().find_map(|text| {
        let text = text.to_lowercase();
        let number_after = |word: &str| -> Option<u64> {
            let rest = text.split_once(word)?.1.trim_start();
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        };
        let (limit, used) = number_after("limit ").zip(number_after("requested "))?;
        (used > limit).then_some(Overflow {
            used: Some(used),
            prompt: None,
            limit: Some(limit),
            pattern: PER_MINUTE,
            provider: "any",
        })
    })
}

/// How long the server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date.
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
        // The server's own clock, where it says what it shows.
        let now = text(DATE.as_str()).and_then(date).unwrap_or(now);
        Some(date(after)?.duration_since(now).unwrap_or_default())
    })
}

fn request_id(headers: &HeaderMap) -> Option<&str> {
    ["x-request-id", "request-id"].into_iter().find_map(|name| headers.get(name)?.to_str().ok())
}
