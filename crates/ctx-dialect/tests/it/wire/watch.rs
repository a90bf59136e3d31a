//! Answers inspected as they pass.

use ctx_dialect::wire::{AnswerState, Protocol, Watch};

/// Watches an answer whole, and split at every byte.
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
        (whole.state(), whole.usage(), whole.failure(), whole.finish_reason(), whole.is_finished()),
        (cut.state(), cut.usage(), cut.failure(), cut.finish_reason(), cut.is_finished()),
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
    assert_eq!(watch.state(), AnswerState::Content);
    let usage = watch.usage().unwrap();
    assert_eq!((usage.prompt(), usage.cache_read, usage.output), (10, 4, 2));
    assert!(watch.is_finished() && !watch.is_window_full());
    assert_eq!(watch.finish_reason(), Some("stop"));
}

#[test]
fn an_error_before_any_content_is_reported() {
    let stream = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n\
        data: {\"error\":{\"message\":\"too long\",\"code\":\"context_length_exceeded\"}}\n\n";
    let watch = watched(Protocol::Chat, stream);
    assert_eq!(watch.state(), AnswerState::Failure);
    let failure = watch.failure().unwrap();
    assert_eq!(failure.message.as_deref(), Some("too long"));
    assert_eq!(failure.code.as_deref(), Some("context_length_exceeded"));
    assert!(failure.json.starts_with("{\"error\""));
}

#[test]
fn an_error_after_the_first_word_is_reported_too() {
    let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n\
        data: {\"error\":\"gone\"}\n\n";
    let watch = watched(Protocol::Chat, stream);
    assert_eq!(watch.state(), AnswerState::Content);
    assert_eq!(watch.failure().unwrap().message.as_deref(), Some("gone"));
}

#[test]
fn a_response_that_failed_says_why() {
    let stream = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\",\"error\":null,\"output\":[]}}\n\n\
        event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds\"}}}\n\n";
    let watch = watched(Protocol::Responses, stream);
    assert_eq!(watch.state(), AnswerState::Failure);
    assert_eq!(watch.failure().unwrap().code.as_deref(), Some("context_length_exceeded"));
    let whole =
        r#"{"id":"r","status":"failed","error":{"code":"server_error","message":"x"},"output":[]}"#;
    assert_eq!(watched(Protocol::Responses, whole).state(), AnswerState::Failure);
}

#[test]
fn a_response_is_an_answer_from_its_first_item_on() {
    for item in [
        r#"{"type":"response.output_text.delta","delta":"a"}"#,
        r#"{"type":"response.reasoning_summary_text.delta","delta":"a"}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#,
        r#"{"type":"response.output_item.added","item":{"type":"reasoning","summary":[]}}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"f","arguments":""}}"#,
    ] {
        let mut watch = Watch::new(Protocol::Responses);
        assert_eq!(
            watch.push(b"data: {\"type\":\"response.created\",\"response\":{}}\n\n"),
            AnswerState::Pending
        );
        assert_eq!(
            watch.push(format!("data: {item}\n\n").as_bytes()),
            AnswerState::Content,
            "{item}"
        );
    }
    let end = r#"{"status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}],"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":3},"output_tokens":1,"total_tokens":8}}"#;
    let stream = format!("data: {{\"type\":\"response.incomplete\",\"response\":{end}}}\n\n");
    for answer in [end, &stream] {
        let watch = watched(Protocol::Responses, answer);
        assert_eq!((watch.state(), watch.is_finished()), (AnswerState::Content, true));
        assert_eq!(watch.finish_reason(), Some("max_output_tokens"));
        let usage = watch.usage().unwrap();
        assert_eq!((usage.prompt(), usage.cache_read, usage.output), (7, 3, 1));
    }
}

#[test]
fn anthropic_counts_come_twice_and_its_window_may_be_full() {
    let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":4,\"cache_creation_input_tokens\":1,\"output_tokens\":1}}}\n\n\
        event: ping\ndata: {\"type\":\"ping\"}\n\n";
    let mut watch = Watch::new(Protocol::Messages);
    assert_eq!(watch.push(stream.as_bytes()), AnswerState::Pending);
    // The first block makes it an answer, however long the block stays empty.
    let block = b"data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n";
    assert_eq!(watch.push(block), AnswerState::Content);
    let rest = "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"model_context_window_exceeded\"},\"usage\":{\"output_tokens\":9}}\n\n\
        data: {\"type\":\"message_stop\"}\n\n";
    let watch = watched(Protocol::Messages, &format!("{stream}{rest}"));
    let usage = watch.usage().unwrap();
    assert_eq!((usage.prompt(), usage.cache_read, usage.cache_write, usage.output), (10, 4, 1, 9));
    assert!(watch.is_window_full() && watch.is_finished());
    assert_eq!(watch.state(), AnswerState::Content);

    let failed = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let watch = watched(Protocol::Messages, &format!("{stream}{failed}"));
    assert_eq!(watch.state(), AnswerState::Failure);
    assert_eq!(watch.failure().unwrap().code.as_deref(), Some("overloaded_error"));

    let whole = r#"{"type":"message","content":[{"type":"tool_use","id":"t","name":"f","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":2}}"#;
    let watch = watched(Protocol::Messages, whole);
    assert_eq!((watch.state(), watch.finish_reason()), (AnswerState::Content, Some("tool_use")));
}

#[test]
fn the_usage_of_anthropics_compactions_is_apart() {
    let usage = r#"{"input_tokens":3,"output_tokens":2,"iterations":[{"type":"compaction","input_tokens":90,"cache_read_input_tokens":10,"output_tokens":8},{"type":"message","input_tokens":3,"output_tokens":2}]}"#;
    let delta = format!(r#"{{"type":"message_delta","delta":{{}},"usage":{usage}}}"#);
    let whole = format!(r#"{{"type":"message","content":[],"usage":{usage}}}"#);
    for answer in [whole, format!("data: {delta}\n\n")] {
        let watch = watched(Protocol::Messages, &answer);
        let [compaction] = watch.compaction_usage() else { panic!("{watch:?}") };
        assert_eq!((watch.usage().unwrap().prompt(), watch.usage().unwrap().output), (3, 2));
        assert_eq!((compaction.prompt(), compaction.cache_read, compaction.output), (100, 10, 8));
    }
}

#[test]
fn gemini_streams_events_and_lists() {
    let first = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"a]}\"["}]}}]}"#;
    let last = r#"{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":8,"cachedContentTokenCount":3,"candidatesTokenCount":2,"thoughtsTokenCount":1,"totalTokenCount":11}}"#;
    for answer in [
        format!("data: {first}\r\n\r\ndata: {last}\r\n\r\n"),
        format!("[{first}\n,\r\n{last}\n]"),
        format!("[\n  {first},{last}]"),
    ] {
        let watch = watched(Protocol::Gemini, &answer);
        assert_eq!(
            (watch.state(), watch.finish_reason()),
            (AnswerState::Content, Some("STOP")),
            "{answer}"
        );
        let usage = watch.usage().unwrap();
        assert_eq!((usage.prompt(), usage.cache_read, usage.output), (8, 3, 3));
    }
    for error in [
        r#"{"error":{"code":400,"message":"too many","status":"INVALID_ARGUMENT"}}"#,
        r#"[{"error":{"code":400,"message":"too many","status":"INVALID_ARGUMENT"}}]"#,
    ] {
        let watch = watched(Protocol::Gemini, error);
        assert_eq!(watch.state(), AnswerState::Failure);
        assert_eq!(watch.failure().unwrap().message.as_deref(), Some("too many"));
    }
}

#[test]
fn garbage_is_an_empty_answer_and_oversized_events_are_skipped() {
    for protocol in Protocol::ALL {
        for answer in
            ["", "\u{0}", "data", "data: {", "<html>", "[[[[]]]]", "}}]]", "{\"a\":", "data: 5\n\n"]
        {
            let watch = watched(protocol, answer);
            assert_eq!(
                (watch.state(), watch.usage()),
                (AnswerState::Empty, None),
                "{protocol} {answer}"
            );
        }
        let mut watch = Watch::new(protocol);
        watch.push(b"data: {\"x\":\"");
        for _ in 0..20 {
            watch.push(&vec![b'a'; 1 << 20]);
        }
        assert_eq!(watch.push(b"\"}\n\n"), AnswerState::Content);
        assert!(watch.buffered() < 9 << 20, "{}", watch.buffered());
    }
}
