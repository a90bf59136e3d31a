//! Splits a request.

use std::borrow::Cow;
use std::ops::Range;

use ctx_core::{Error, ErrorKind, Result};
use memchr::memmem;
use serde_json::value::RawValue;

use super::result_ids::ResultMatcher;
use super::unit::{CutHistory, cut, span};
use super::{Protocol, Route, Unit, system};
use crate::json::{JsonElement, Listing, Object};

/// A parsed request to a provider, borrowing from the body.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The API.
    pub protocol: Protocol,
    /// The requested model.
    pub model: Option<Cow<'a, str>>,
    /// The text of a separate system prompt. In OpenAI's chat, system messages are part of the
    /// history.
    pub system: Option<String>,
    /// The offered tools.
    pub tools: Option<&'a RawValue>,
    /// Whether the answer is requested as a stream.
    pub streams: bool,
    /// The maximum number of answer tokens.
    pub max_tokens: Option<u64>,
    /// The window that the request sets (Ollama's `options.num_ctx`).
    pub window: Option<u64>,
    /// The client's cache key of the conversation (`prompt_cache_key`).
    pub cache_key: Option<Cow<'a, str>>,
    /// Whether the provider stores a part of the history that the body only continues
    /// (`previous_response_id`, `conversation`, `thread`, references to stored items): the units
    /// are then incomplete.
    pub is_continued: bool,
    /// The history, oldest first; from the provider's last compaction on, if it has one.
    pub units: Vec<Unit<'a>>,
    /// The number of elements in the list.
    pub(super) count: usize,
    /// The elements before the units, which the provider ignores.
    pub(super) ignored: &'a str,
    pub(super) body: &'a str,
    pub(super) fields: Object<'a>,
    /// The range of the history in the body.
    pub(super) history: Range<usize>,
    /// Whether thinking must be sent back together with its calls (Anthropic's models).
    pub(super) thinks: bool,
    /// Whether the history is a list rather than a single value.
    pub(super) is_list: bool,
    pub(super) system_at: Option<SystemField<'a>>,
}

/// The field of a separate system prompt.
#[derive(Clone, Debug)]
pub(super) struct SystemField<'a> {
    pub(super) at: Range<usize>,
    pub(super) value: &'a RawValue,
}

impl<'a> Request<'a> {
    /// Parses a body.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it is not a JSON object, has no valid history, or has two of
    /// them.
    pub fn parse(route: &Route, body: &'a str) -> Result<Self> {
        let protocol = route.protocol;
        let History { object, list, at: history, is_list } = History::read(protocol, body)?;
        once(&object, system::keys(protocol))?;
        let system_at = system::keys(protocol).iter().find_map(|key| {
            let value = object.field(key)?;
            let (from, to) = span(body, value);
            Some(SystemField { at: from..to, value })
        });
        let count = list.len();
        let CutHistory { units, is_continued: refers, ignored } =
            cut(protocol, list, body, &mut ResultMatcher::of(protocol));
        let named = object.text("model").filter(|name| !name.is_empty());
        Ok(Self {
            protocol,
            model: named.or_else(|| route.model.clone().map(Cow::Owned)),
            system: system_at.as_ref().and_then(|field| system::text(protocol, field.value)),
            tools: match protocol {
                Protocol::Converse => object.object("toolConfig").and_then(|all| all.get("tools")),
                _ => object.get("tools"),
            },
            streams: route.streams.unwrap_or_else(|| object.is_true("stream")),
            max_tokens: max_tokens(protocol, &object),
            window: object.object("options").and_then(|options| options.count("num_ctx")),
            cache_key: object.text("prompt_cache_key").filter(|key| !key.is_empty()),
            is_continued: refers || is_continued(&object),
            units,
            count,
            ignored,
            body,
            history,
            thinks: thinks(protocol, &object),
            fields: object,
            is_list,
            system_at,
        })
    }

    /// Reads a history that comes without a body. `list` is a valid JSON array, and `elements` are the
    /// parts of it that are its elements. The matcher knows the list as it was before: its first elements are
    /// not read again.
    pub fn of_list(
        list: &'a str,
        elements: impl Iterator<Item = &'a str>,
        matcher: &mut ResultMatcher,
    ) -> Self {
        let protocol = matcher.protocol;
        let known = matcher.count();
        let element = |(at, raw)| JsonElement {
            raw,
            object: if at < known { None } else { Object::of_text(raw) },
        };
        let elements: Vec<_> = elements.enumerate().map(element).collect();
        let count = elements.len();
        let CutHistory { units, is_continued, ignored } = cut(protocol, elements, list, matcher);
        Self {
            protocol,
            model: None,
            system: None,
            tools: None,
            streams: false,
            max_tokens: None,
            window: None,
            cache_key: None,
            is_continued,
            units,
            count,
            ignored,
            body: list,
            fields: Object::default(),
            history: 0..list.len(),
            // The field that says so is not in the list.
            thinks: protocol == Protocol::Messages
                && memmem::find(list.as_bytes(), b"\"thinking\"").is_some(),
            is_list: true,
            system_at: None,
        }
    }

    /// Returns the original body.
    pub fn body(&self) -> &'a str {
        self.body
    }
}

/// The history of a body.
struct History<'a> {
    /// The fields of the body; the history may be missing.
    object: Object<'a>,
    list: Vec<JsonElement<'a>>,
    at: Range<usize>,
    is_list: bool,
}

impl<'a> History<'a> {
    fn read(protocol: Protocol, body: &'a str) -> Result<Self> {
        let key = protocol.history();
        if let Some(Listing { object, elements, list: at }) = Listing::parse(body, key) {
            return Ok(Self { object, list: elements, at, is_list: true });
        }
        let object = object(body)?;
        once(&object, &[key])?;
        let value = object.field(key);
        let (list, is_list) = match (value.map(|raw| (raw, JsonElement::all(raw))), protocol) {
            (Some((_, Some(list))), _) => (list, true),
            // A string is equivalent to one user message.
            (Some((raw, None)), Protocol::Responses) if raw.get().starts_with('"') => {
                (vec![JsonElement::of(raw)], false)
            }
            (Some((raw, None)), Protocol::Gemini) if raw.get().starts_with('{') => {
                (vec![JsonElement::of(raw)], false)
            }
            // The input may be a prompt stored at the provider.
            (None, Protocol::Responses) => (Vec::new(), true),
            (Some((raw, _)), Protocol::Responses) if raw.get() == "null" => (Vec::new(), true),
            (None, _) => return Err(refused("missing history in the request").with("field", key)),
            _ => {
                return Err(refused("the history of the request is not a list").with("field", key));
            }
        };
        // A missing history becomes the last field of the body.
        let end = body.rfind('}').unwrap_or(body.len());
        let at = value.map_or(end..end, |value| {
            let (from, to) = span(body, value);
            from..to
        });
        Ok(Self { object, list, at, is_list })
    }
}

fn object(body: &str) -> Result<Object<'_>> {
    let text = body.trim_start();
    if !text.starts_with('{') {
        return Err(refused("the request body is not a JSON object"));
    }
    let (object, error) = Object::parse_prefix(body);
    match error {
        None => Ok(object),
        Some(error) => Err(refused("the request body is not valid JSON")
            .with("line", error.line())
            .with("column", error.column())
            .source(error)),
    }
}

/// Refuses duplicate fields: parsers use either the first or the last, so ctx might change one
/// while the provider reads the other.
fn once(object: &Object<'_>, keys: &[&str]) -> Result<()> {
    let count = object.iter().filter(|(key, _)| keys.contains(key)).count();
    if count > 1 {
        let name = keys.first().copied().unwrap_or_default();
        return Err(refused("duplicate field in the request").with("field", name));
    }
    Ok(())
}

fn refused(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidInput, what)
        .hint("send the request as described in the provider's documentation")
}

fn thinks(protocol: Protocol, object: &Object<'_>) -> bool {
    let nested = object.object("additionalModelRequestFields");
    let object = match protocol {
        Protocol::Messages => object,
        Protocol::Converse => nested.as_ref().unwrap_or(object),
        Protocol::Chat | Protocol::Responses | Protocol::Gemini => return false,
    };
    let kind = object.object("thinking").and_then(|thinking| thinking.owned("type"));
    matches!(kind.as_deref(), Some("enabled" | "adaptive"))
}

fn max_tokens(protocol: Protocol, object: &Object<'_>) -> Option<u64> {
    match protocol {
        Protocol::Chat => {
            let most = object.count("max_completion_tokens").or_else(|| object.count("max_tokens"));
            most.or_else(|| object.object("options")?.count("num_predict"))
        }
        Protocol::Responses => object.count("max_output_tokens"),
        Protocol::Messages => object.count("max_tokens"),
        Protocol::Converse => object.object("inferenceConfig")?.count("maxTokens"),
        Protocol::Gemini => {
            let config =
                object.object("generationConfig").or_else(|| object.object("generation_config"))?;
            config.count("maxOutputTokens").or_else(|| config.count("max_output_tokens"))
        }
    }
}

/// Whether a field refers to conversation state stored at the provider, in any API.
fn is_continued(object: &Object<'_>) -> bool {
    const FIELDS: [&str; 4] = ["conversation", "thread", "cachedContent", "cached_content"];
    object.iter().any(|(key, value)| {
        let is_previous = key.starts_with("previous_") && key.ends_with("_id");
        (is_previous || FIELDS.contains(&key)) && value.get() != "null"
    })
}
