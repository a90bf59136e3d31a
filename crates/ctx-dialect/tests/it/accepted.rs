//! What each provider accepts according to the strict provider of the testkit, independent of this
//! crate.

use ctx_core::{Message, RawJson};
use ctx_dialect::hygiene::{self, Rules, Thoughts, clean};
use ctx_dialect::{anthropic, openai_chat, openai_responses};
use ctx_testkit::provider::Api;
use ctx_testkit::provider::strict::{self, House, Ids, Seals};
use serde_json::{Value, json};

/// The signatures in the test conversations.
const PROOFS: [&str; 3] = ["EqQBCgIYAhIM", "gAAAABo", "gAAAA"];

/// Writes a conversation in the form of a request.
pub(crate) fn written(messages: &[Message], rules: &Rules) -> Vec<Value> {
    texts(messages, rules).iter().map(|json| serde_json::from_str(json).expect("JSON")).collect()
}

/// The same, as bytes.
pub(crate) fn texts(messages: &[Message], rules: &Rules) -> Vec<String> {
    let clean = clean(messages, rules);
    let clean = clean.iter().map(AsRef::as_ref);
    let written: Vec<RawJson> = match rules.api.as_str() {
        "anthropic-messages" => anthropic::write(clean).messages,
        "openai-responses" => openai_responses::write(clean),
        _ => openai_chat::write(clean),
    };
    written.iter().map(|json| json.as_str().to_owned()).collect()
}

/// Returns why a provider refuses a conversation; `None` if it does not.
pub(crate) fn refusal(messages: &[Value], rules: &Rules) -> Option<String> {
    if messages.is_empty() {
        return None;
    }
    let api = match rules.api.as_str() {
        "anthropic-messages" => Api::Messages,
        "openai-responses" => Api::Responses,
        _ => Api::Chat,
    };
    let body = match api {
        Api::Messages => json!({ "max_tokens": 1, "tools": [{}], "messages": messages }),
        Api::Responses => json!({ "store": false, "input": messages }),
        _ => json!({ "messages": messages }),
    };
    let seals = match api {
        // It accepts only its own signatures.
        Api::Messages => Seals::default().trusting(PROOFS[0]),
        _ => PROOFS.into_iter().fold(Seals::default(), Seals::trusting),
    };
    strict::refusal(api, &body, &house(api, rules), &seals)
}

/// Returns the strictest provider that the rules cover.
fn house(api: Api, rules: &Rules) -> House {
    let own = House { filled: true, ids_once: true, objects: true, ..House::of(api) };
    match api {
        Api::Messages => House { alternates: true, ..own },
        Api::Responses => own,
        _ => House {
            ids: match rules.ids {
                hygiene::CallIdFormat::Letters { exactly } => Ids::Exactly(exactly),
                hygiene::CallIdFormat::Alphanumeric { most } => Ids::Alphanumeric(most),
                hygiene::CallIdFormat::Word { most } => Ids::Word(most),
                _ => Ids::Printable(40),
            },
            names: rules.names,
            alternates: rules.merges,
            user_first: rules.user_first,
            user_last: rules.model_not_last,
            model_after_tools: rules.model_after_tools,
            images: rules.images,
            reasoning: rules.thoughts != Thoughts::None,
            ..own
        },
    }
}
