//! Random requests, and histories cut in random ways.

use ctx_core::{Block, Message, Role};
use ctx_dialect::hygiene::{Rules, clean};
use ctx_dialect::wire::{OutgoingUnit, Protocol, Request, ResultMatcher, Watch};
use ctx_dialect::{anthropic, gemini, openai_chat, openai_responses};
use ctx_testkit::provider::Api;
use ctx_testkit::provider::strict::{House, Seals, refusal};
use proptest::prelude::*;
use serde_json::Value;

use super::{FAKED, all_unchanged, parse};
use crate::random::sensible;

const PROOFS: [&str; 3] = ["EqQBCgIYAhIM", "gAAAABo", "gAAAA"];

/// Returns the history of a request with this conversation.
fn list(protocol: Protocol, messages: &[Message]) -> Vec<String> {
    let rules = Rules::of(protocol.api(), "p", "m");
    let clean = clean(messages, &rules);
    let clean = || clean.iter().map(AsRef::as_ref);
    let list = match protocol {
        Protocol::Chat => openai_chat::write(clean()),
        Protocol::Responses => openai_responses::write(clean()),
        Protocol::Messages | Protocol::Converse => anthropic::write(clean()).messages,
        Protocol::Gemini => gemini::write(clean()).contents,
    };
    list.iter().map(|json| json.as_str().to_owned()).collect()
}

/// Returns a request with this conversation, as a client of the API sends it.
fn body(protocol: Protocol, messages: &[Message]) -> String {
    let list = list(protocol, messages);
    let (key, before) = match protocol {
        Protocol::Chat => ("messages", r#"{"model":"m", "x":1.50"#),
        Protocol::Responses => ("input", r#"{"model":"m","store":false, "x":1.50"#),
        Protocol::Messages | Protocol::Converse => {
            ("messages", r#"{"max_tokens":5,"model":"m","tools":[{"name":"f"}]"#)
        }
        Protocol::Gemini => ("contents", r#"{"x":1.50"#),
    };
    format!("{before},\n \"{key}\" : [ {} ], \"y\":\"\\u00e9\"}}", list.join(" ,\n"))
}

fn verdict(protocol: Protocol, body: &str) -> Option<String> {
    let api = match protocol {
        Protocol::Chat => Api::Chat,
        Protocol::Responses => Api::Responses,
        Protocol::Messages | Protocol::Converse => Api::Messages,
        Protocol::Gemini => Api::Gemini,
    };
    let value: Value = serde_json::from_str(body).expect("JSON");
    let seals = PROOFS.into_iter().fold(Seals::default(), Seals::trusting);
    let house =
        House { ids_once: false, alternates: protocol == Protocol::Messages, ..House::of(api) };
    refusal(api, &value, &house, &seals)
}

/// Groups the units that are kept or dropped together: an answer with calls and all its results.
fn groups(units: &[Message]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (n, unit) in units.iter().enumerate() {
        let brings = unit.tool_results().next().is_some();
        match groups.last_mut().filter(|_| brings) {
            Some(group) => group.push(n),
            None => groups.push(vec![n]),
        }
    }
    groups
}

fn shorter(message: &Message) -> Message {
    let mut message = message.clone();
    for block in &mut message.blocks {
        match block {
            Block::Text { text } => *text = "cut".to_owned(),
            Block::ToolResult(result) => result.content = vec![Block::text("cut")],
            _ => {}
        }
    }
    message
}

fn without_thoughts(message: &Message) -> Message {
    let mut message = message.clone();
    message.blocks.retain(|block| !matches!(block, Block::Thinking { .. }));
    message
}

/// What happens to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Told,
    Dropped,
    Shorter,
    WithoutThoughts,
    Recalled,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let one = prop_oneof![
        4 => Just(Fate::Told), 3 => Just(Fate::Dropped), 2 => Just(Fate::Shorter), 1 => Just(Fate::WithoutThoughts), 1 => Just(Fate::Recalled)
    ];
    prop::collection::vec(one, 40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_unchanged_history_gives_the_same_bytes(messages in sensible()) {
        for protocol in FAKED {
            let body = body(protocol, &messages);
            let request = parse(protocol.name(), &body);
            prop_assert_eq!(&request.with_history(&all_unchanged(&request), None).unwrap(), &body);
        }
    }

    #[test]
    fn a_history_cut_in_whole_groups_is_accepted(
        messages in sensible(), fates in fates(), summary in any::<bool>(), addition in any::<bool>(),
    ) {
        for protocol in FAKED {
            let body = body(protocol, &messages);
            prop_assert_eq!(verdict(protocol, &body), None, "{}", body);
            let request = parse(protocol.name(), &body);
            let units: Vec<_> = request.units.iter().map(|unit| (*unit.read()).clone()).collect();
            let groups = groups(&units);
            let summary_text = Message::text(Role::CompactionSummary, "they spoke");
            let recalled = Message::text(Role::User, "recalled");
            let short: Vec<_> = units.iter().map(shorter).collect();
            let unthought: Vec<_> = units.iter().map(without_thoughts).collect();
            let written = |message, of| OutgoingUnit::Message { message, of };
            let mut out: Vec<OutgoingUnit<'_>> = Vec::new();
            if summary {
                out.push(written(&summary_text, None));
            }
            for (group, fate) in groups.iter().zip(&fates) {
                // The newest group is always kept.
                let is_last = group.contains(&(units.len() - 1));
                match fate {
                    Fate::Dropped if !is_last => continue,
                    Fate::Recalled => out.push(written(&recalled, None)),
                    _ => {}
                }
                for &n in group {
                    out.push(match fate {
                        Fate::Shorter => written(&short[n], Some(n)),
                        Fate::WithoutThoughts => written(&unthought[n], Some(n)),
                        _ => OutgoingUnit::Unchanged(n),
                    });
                }
            }
            let put = request.with_history(&out, addition.then_some("more")).unwrap();
            prop_assert_eq!(verdict(protocol, &put), None, "{}\n{:?}\n{}\n{}", protocol, fates, body, put);
            // Repeated: the bytes must not change between requests.
            prop_assert_eq!(put, request.with_history(&out, addition.then_some("more")).unwrap());
        }
    }

    #[test]
    fn a_list_read_as_it_grows_is_the_list_of_the_body(
        messages in sensible(), steps in prop::collection::vec((0_usize..30, 0_usize..30), 1..6),
        fates in fates(), doubled in any::<bool>(),
    ) {
        for protocol in FAKED {
            let mut list = list(protocol, &messages);
            if doubled {
                // Calls and results then have ids that occur before.
                list.extend(list.clone());
            }
            let mut matcher = ResultMatcher::of(protocol);
            let whole = (list.len(), list.len());
            for (keep, length) in steps.iter().copied().chain([whole]) {
                let (keep, length) = (keep.min(list.len()), length.min(list.len()));
                matcher.keep(keep.min(length));
                let text = format!("[{}]", list[..length].join(","));
                let ends = list[..length].iter().scan(0, |end, json| {
                    *end += json.len() + 1;
                    Some(*end)
                });
                let elements = ends.zip(&list).map(|(end, json)| &text[end - json.len()..end]);
                let grown = Request::of_list(&text, elements, &mut matcher);
                let thinks = protocol == Protocol::Messages && text.contains("\"thinking\"");
                let thinking = if thinks { r#","thinking":{"type":"enabled"}"# } else { "" };
                let body = format!("{{\"{}\":{text}{thinking}}}", protocol.history());
                let route = super::path(protocol.name());
                let read = Request::parse(&route, &body).unwrap();
                let units = |request: &Request<'_>| -> Vec<_> {
                    request.units.iter().map(|unit| (unit.raw.to_owned(), unit.read())).collect()
                };
                prop_assert_eq!(units(&grown), units(&read));
                let short: Vec<_> = read.units.iter().map(|unit| shorter(&unit.read())).collect();
                let out: Vec<_> = (0..short.len())
                    .map(|n| match fates[n % fates.len()] {
                        Fate::Shorter => OutgoingUnit::Message { message: &short[n], of: Some(n) },
                        _ => OutgoingUnit::Unchanged(n),
                    })
                    .collect();
                prop_assert_eq!(grown.elements(&out).unwrap(), read.elements(&out).unwrap());
            }
        }
    }

    #[test]
    fn an_answer_split_in_any_way_gives_the_same_findings(
        parts in prop::collection::vec(prop_oneof![
            Just("data: {\"choices\":[{\"delta\":{\"content\":\"é\"},\"finish_reason\":null}]}\n\n".to_owned()),
            Just("data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"a\"}}\r\n\r\n".to_owned()),
            Just("event: error\ndata: {\"error\":{\"message\":\"m\"}}\n\n".to_owned()),
            Just("data: {\"usage\":{\"prompt_tokens\":3}}\r\r".to_owned()),
            Just("[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"]\\\"}\"}]}}]},\r\n".to_owned()),
            Just("data: [DONE]\n\n".to_owned()),
            Just(": comment\n".to_owned()),
            "\\PC{0,12}",
        ], 0..6),
        cuts in prop::collection::vec(1_usize..9, 1..40),
    ) {
        let answer = parts.concat();
        for protocol in Protocol::ALL {
            let mut whole = Watch::new(protocol);
            whole.push(answer.as_bytes());
            whole.end();
            let mut cut = Watch::new(protocol);
            let mut rest = answer.as_bytes();
            for size in cuts.iter().cycle() {
                let (piece, left) = rest.split_at((*size).min(rest.len()));
                cut.push(piece);
                rest = left;
                if rest.is_empty() {
                    break;
                }
            }
            cut.end();
            prop_assert_eq!(format!("{:?}", whole.failure()), format!("{:?}", cut.failure()));
            prop_assert_eq!(
                (whole.state(), whole.usage(), whole.finish_reason(), whole.is_finished()),
                (cut.state(), cut.usage(), cut.finish_reason(), cut.is_finished())
            );
        }
    }

    #[test]
    fn no_input_causes_a_panic(text in "\\PC{0,60}", json in "[\\[\\]{}\",:a0-9\\\\ud8 ]{0,60}") {
        for protocol in Protocol::ALL {
            for body in [&text, &json] {
                let route = super::path(protocol.name());
                let _ = ctx_dialect::wire::Request::parse(&route, body);
                for key in ["messages", "input", "contents"] {
                    let body = format!("{{\"{key}\":[{body}],\"system\":{{}}}}");
                    if let Ok(request) = ctx_dialect::wire::Request::parse(&route, &body) {
                        let message = Message::text(Role::User, "x");
                        let out: Vec<_> = (0..request.units.len())
                            .map(|n| OutgoingUnit::Message { message: &message, of: Some(n) })
                            .collect();
                        prop_assert!(request.with_history(&out, Some("more")).is_ok());
                        for unit in &request.units {
                            let _ = unit.read();
                        }
                    }
                }
            }
        }
    }
}
