//! A request taken apart.

use std::borrow::Cow;
use std::ops::Range;

use ctx_core::{Error, ErrorKind, Result};
use serde_json::value::RawValue;

use super::unit::{cut, span};
use super::{Protocol, Route, Unit, system};
use crate::json::{Object, elements};

/// A request to a provider, taken apart. It borrows from the body.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The API it speaks.
    pub protocol: Protocol,
    /// The model asked.
    pub model: Option<Cow<'a, str>>,
    /// The text of the system prompt, where it stands beside the history. OpenAI's chat has it in
    /// the history, as messages of the system.
    pub system: Option<String>,
    /// The tools offered.
    pub tools: Option<&'a RawValue>,
    /// Whether the answer is to be a stream.
    pub streams: bool,
    /// The most that the answer may hold, in tokens.
    pub max_tokens: Option<u64>,
    /// What the client calls the conversation, so that the provider finds its cache
    /// (`prompt_cache_key`).
    pub cache_key: Option<Cow<'a, str>>,
    /// Whether the provider holds some of the history, and the body only goes on from there
    /// (`previous_response_id`, `conversation`, `thread`, references to stored items): the units are
    /// not all.
    pub is_continued: bool,
    /// The history, oldest first.
    pub units: Vec<Unit<'a>>,
    pub(super) body: &'a str,
    /// Where the history stands in the body.
    pub(super) history: Range<usize>,
    /// Whether the model thinks, and what it thought must go back with its calls (Anthropic).
    pub(super) thinks: bool,
    /// Whether the history is a list, or one value that stands for a list of it.
    pub(super) is_list: bool,
    pub(super) system_at: Option<Place<'a>>,
}

/// A field of the body.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    pub(super) at: Range<usize>,
    pub(super) value: &'a RawValue,
}

impl<'a> Request<'a> {
    /// Takes a body apart.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] where it is no JSON object, has no history in the form that the
    /// API wants, or has two of them.
    pub fn take(route: &Route, body: &'a str) -> Result<Self> {
        let protocol = route.protocol;
        let object = object(body)?;
        let key = protocol.history();
        once(&object, &[key])?;
        once(&object, system::keys(protocol))?;
        let value = object.field(key);
        let (list, is_list) = match (value.map(|value| (value, elements(value))), protocol) {
            (Some((_, Some(list))), _) => (list, true),
            // A text stands for one message of the user.
            (Some((value, None)), Protocol::Responses) if value.get().starts_with('"') => {
                (vec![value], false)
            }
            (Some((value, None)), Protocol::Gemini) if value.get().starts_with('{') => {
                (vec![value], false)
            }
            // What is asked may be a prompt that the provider knows.
            (None, Protocol::Responses) => (Vec::new(), true),
            (Some((value, _)), Protocol::Responses) if value.get() == "null" => (Vec::new(), true),
            (None, _) => return Err(refused("the request has no history").with("field", key)),
            _ => {
                return Err(refused("the history of the request is no list").with("field", key));
            }
        };
        // Where there is none it would be the last field of the body.
        let end = body.rfind('}').unwrap_or(body.len());
        let history = value.map_or(end..end, |value| {
            let (from, to) = span(body, value);
            from..to
        });
        let system_at = system::keys(protocol).iter().find_map(|key| {
            let value = object.field(key)?;
            let (from, to) = span(body, value);
            Some(Place { at: from..to, value })
        });
        let (units, is_whole) = cut(protocol, &list, body);
        let named = object.text("model").filter(|name| !name.is_empty());
        Ok(Self {
            protocol,
            model: named.or_else(|| route.model.clone().map(Cow::Owned)),
            system: system_at.as_ref().and_then(|place| system::text(protocol, place.value)),
            tools: object.get("tools"),
            streams: route.streams.unwrap_or_else(|| object.is_true("stream")),
            max_tokens: max_tokens(protocol, &object),
            cache_key: object.text("prompt_cache_key").filter(|key| !key.is_empty()),
            is_continued: !is_whole || is_continued(&object),
            units,
            body,
            history,
            thinks: protocol == Protocol::Messages && thinks(&object),
            is_list,
            system_at,
        })
    }

    /// The body it was taken from.
    #[must_use]
    pub fn body(&self) -> &'a str {
        self.body
    }
}

fn object(body: &str) -> Result<Object<'_>> {
    let text = body.trim_start();
    if !text.starts_with('{') {
        return Err(refused("the body of the request is no JSON object"));
    }
    let (object, error) = Object::parse_prefix(body);
    match error {
        None => Ok(object),
        Some(error) => Err(refused("the body of the request is not valid JSON")
            .with("line", error.line())
            .with("column", error.column())
            .source(error)),
    }
}

/// Whoever reads a body in which the same is said twice takes the first or the last; ctx would
/// change one, and the provider read the other.
fn once(object: &Object<'_>, keys: &[&str]) -> Result<()> {
    let count = object.iter().filter(|(key, _)| keys.contains(key)).count();
    if count > 1 {
        let name = keys.first().copied().unwrap_or_default();
        return Err(refused("the request says something twice").with("field", name));
    }
    Ok(())
}

fn refused(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidInput, what)
        .hint("send the request as the provider's documentation has it")
}

fn thinks(object: &Object<'_>) -> bool {
    let kind = object.object("thinking").and_then(|thinking| thinking.owned("type"));
    matches!(kind.as_deref(), Some("enabled" | "adaptive"))
}

fn max_tokens(protocol: Protocol, object: &Object<'_>) -> Option<u64> {
    match protocol {
        Protocol::Chat => {
            object.count("max_completion_tokens").or_else(|| object.count("max_tokens"))
        }
        Protocol::Responses => object.count("max_output_tokens"),
        Protocol::Messages => object.count("max_tokens"),
        Protocol::Gemini => {
            let config =
                object.object("generationConfig").or_else(|| object.object("generation_config"))?;
            config.count("maxOutputTokens").or_else(|| config.count("max_output_tokens"))
        }
    }
}

/// Whether a field names what the provider holds of the conversation, in whichever API.
fn is_continued(object: &Object<'_>) -> bool {
    const FIELDS: [&str; 4] = ["conversation", "thread", "cachedContent", "cached_content"];
    object.iter().any(|(key, value)| {
        let is_previous = key.starts_with("previous_") && key.ends_with("_id");
        (is_previous || FIELDS.contains(&key)) && value.get() != "null"
    })
}
