//! Answers as they pass.

use ctx_dialect::wire::{Protocol, Seen, Watch};

/// An answer watched whole, and cut at every byte.
fn watched(protocol: Protocol, answer: &str) -> Watch {
    let mut whole = Watch::new(protocol);
    whole.push(answer.as_bytes());
    whole.end();
    let mut cut = Watch::new(protocol);
    for byte in answer.as_bytes() {
        cut.push(&[*byte]);
    }
    cut.end();
    assert_eq!(
        (whole.seen(), whole.usage(), whole.failure(), whole.finish_reason(), whole.is_finished()),
        (cut.seen(), cut.usage(), cut.failure(), cut.finish_reason(), cut.is_finished()),
    );
    whole
}

#[test]
fn a_chat_stream_begins_with_its_first_word() {
    let stream = "\u{FEFF}: hello\n\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n\
        data: {\"choices\":[{\"delta\":{\"content\":\"é\"}}]}\n\n\
        data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n\
        data: [DONE]\n\n";
    let watch = watched(Protocol::Chat, stream);
    assert_eq!(watch.seen(), Seen::Content);
    let usage = watch.usage().unwrap();
    assert_eq!((usage.prompt(), usage.cache_read, usage.output), (10, 4, 2));
    assert!(watch.is_finished() && !watch.is_window_full());
    assert_eq!(watch.finish_reason(), Some("stop"));
}

#[test]
fn an_error_in_a_stream_is_told_before_anything_is_said() {
    let stream = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n\
        data: {\"error\":{\"message\":\"too long\",\"code\":\"context_length_exceeded\"}}\n\n";
    let watch = watched(Protocol::Chat, stream);
    assert_eq!(watch.seen(), Seen::Failure);
    let failure = watch.failure().unwrap();
    assert_eq!(failure.message.as_deref(), Some("too long"));
    assert_eq!(failure.code.as_deref(), Some("context_length_exceeded"));
    assert!(failure.json.starts_with("{\"error\""));
}
