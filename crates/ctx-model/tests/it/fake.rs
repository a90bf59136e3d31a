//! The client against the scripted provider that other crates test with.

use std::sync::Arc;
use std::time::Duration;

use ctx_core::{Embedder, ErrorKind, Summarizer, SummaryRequest, Tokens};
use ctx_model::{Api, Client, EmbedApi, Endpoint, HttpEmbedder, HttpModel, KeyRef, Timeouts};
use ctx_testkit::provider::{
    Answer, Cut, Failure, FailureKind, FakeProvider, Finish, Moment, RetryAfter, Step, Words,
};

use crate::server::{facts, request};

fn start(steps: impl IntoIterator<Item = Step>) -> FakeProvider {
    FakeProvider::builder().script(steps).key("sk-fake").start().unwrap()
}

fn model_with(fake: &FakeProvider, api: Api, timeouts: Timeouts) -> HttpModel {
    let key = KeyRef::parse("sk-fake").unwrap();
    let endpoint = Endpoint::new(&fake.url(), api).unwrap().with_key(key);
    HttpModel::new(facts(), endpoint, Arc::new(Client::new(timeouts)))
}

fn model(fake: &FakeProvider, api: Api) -> HttpModel {
    model_with(fake, api, Timeouts::default())
}

#[tokio::test]
async fn answers_come_through_in_pieces_of_any_size() {
    for api in Api::ALL {
        let step = || Step::text("## Goal\nship the 🦀, 压缩");
        let fake =
            start([step(), step().write_bytes(1), step().crlf(), step().crlf().write_bytes(3)]);
        let model = model(&fake, api);
        for _ in 0..4 {
            let summary = model.summarize(request()).await.unwrap();
            assert_eq!(
                (summary.text.as_str(), summary.cut_off),
                ("## Goal\nship the 🦀, 压缩", false),
                "{api}"
            );
            assert!(summary.usage.unwrap().output > 0);
        }
        let asked = fake.requests();
        assert_eq!(asked.len(), 4);
        assert_eq!(
            (asked[0].key(), asked[0].prompt.last_user()),
            (Some("sk-fake"), request().prompt.as_str())
        );
        // The prefix sent before is read from the cache and counted as cached.
        let usage = model.ask(&request()).await.unwrap().usage.unwrap();
        // (Anthropic caches only if the request has cache marks, and a summary has none.)
        let cached = api != Api::AnthropicMessages;
        assert_eq!(usage.cache_read > 0, cached, "{api} {usage:?}");
    }
}

#[tokio::test]
async fn every_failure_has_the_right_kind_also_inside_a_stream() {
    use FailureKind as F;
    let expected = |api, kind| match kind {
        // If one request alone exceeds a rate limit, waiting does not help, but less text does.
        F::TokensPerMinute if api != Api::AnthropicMessages => (ErrorKind::Overflow, false),
        F::RateLimited | F::ServerError | F::BadGateway | F::Overloaded | F::GatewayTimeout => {
            (ErrorKind::Upstream, true)
        }
        F::TokensPerMinute => (ErrorKind::Upstream, true),
        F::QuotaExhausted | F::Unauthorized | F::Forbidden | F::NoSuchModel => {
            (ErrorKind::Capability, false)
        }
        F::UnsupportedParameter => (ErrorKind::Upstream, false),
        F::Overflow | F::TooLarge => (ErrorKind::Overflow, false),
    };
    for api in Api::ALL {
        for kind in F::ALL {
            let fake = start([Step::error(kind).always()]);
            let error = model(&fake, api).ask(&request()).await.unwrap_err();
            assert_eq!(
                (error.kind(), error.is_retryable()),
                expected(api, kind),
                "{api} {kind:?}: {error}"
            );
        }
        for kind in [F::RateLimited, F::ServerError, F::Overloaded, F::Overflow] {
            let fake = start([Step::error(Failure::new(kind).in_stream(2)).always()]);
            let error = model(&fake, api).ask(&request()).await.unwrap_err();
            assert_eq!(
                (error.kind(), error.is_retryable()),
                expected(api, kind),
                "{api} in stream {kind:?}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn every_providers_overflow_is_recognised_with_its_numbers() {
    let silent =
        [Words::OpenaiResponses, Words::Groq, Words::Bedrock, Words::Minimax, Words::Ollama];
    let long = SummaryRequest { prompt: "x".repeat(200_000), ..request() };
    for words in Words::all() {
        for step in
            [Step::overflow(), Step::error(Failure::new(FailureKind::Overflow).in_stream(1))]
        {
            let fake = FakeProvider::builder()
                .script([step.always()])
                .window(Tokens(16_000))
                .words(words)
                .start()
                .unwrap();
            let error = model(&fake, Api::OpenAiCompletions).ask(&long).await.unwrap_err();
            assert_eq!(
                (error.kind(), error.is_retryable()),
                (ErrorKind::Overflow, false),
                "{words:?}: {error}"
            );
            let number = |key| {
                let fact = error.context().iter().find(|(name, _)| *name == key);
                fact.and_then(|(_, value)| value.parse::<u64>().ok())
            };
            if silent.contains(&words) {
                assert_eq!((number("tokens"), number("limit")), (None, None), "{words:?}: {error}");
            } else {
                assert_eq!(number("limit"), Some(16_000), "{words:?}: {error}");
                assert!(number("tokens").unwrap() > 50_000, "{words:?}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn a_cut_connection_is_retryable_unless_the_answer_was_complete() {
    for api in Api::ALL {
        let cuts = [
            Cut::BeforeHeaders,
            Cut::InHeaders,
            Cut::AfterHeaders,
            Cut::AfterEvents(1),
            Cut::InEvent(0),
            Cut::InEvent(2),
            Cut::BeforeLastEvent,
        ];
        for cut in cuts {
            let fake =
                start([Step::text("one two three four five six").cut(cut), Step::text("whole")]);
            let model = model(&fake, api);
            // If the stop reason came before the connection broke, the answer is complete.
            let complete = cut == Cut::BeforeLastEvent && api != Api::OpenAiResponses;
            match model.ask(&request()).await {
                Ok(answer) => {
                    assert!(complete && answer.text.ends_with("six"), "{api} {cut:?} {answer:?}");
                }
                Err(error) => {
                    let found = (error.kind(), error.is_retryable(), complete);
                    assert_eq!(found, (ErrorKind::Upstream, true, false), "{api} {cut:?}: {error}");
                    assert_eq!(model.ask(&request()).await.unwrap().text, "whole");
                }
            }
        }
        let fake = start([Step::garbage()]);
        let error = model(&fake, api).ask(&request()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Upstream);
    }
}

#[tokio::test]
async fn reasons_to_stop_mean_the_same_everywhere() {
    for api in Api::ALL {
        for (finish, cut_off) in [
            (Finish::Stop, Some(false)),
            (Finish::Length, Some(true)),
            (Finish::ContentFilter, None),
        ] {
            let answer =
                Answer { text: "so far".to_owned(), finish: Some(finish), ..Answer::default() };
            let fake = start([Step::answer(answer)]);
            let summary = model(&fake, api).summarize(request()).await;
            match cut_off {
                Some(cut_off) => assert_eq!(summary.unwrap().cut_off, cut_off, "{api} {finish:?}"),
                None => assert_eq!(summary.unwrap_err().kind(), ErrorKind::Capability, "{api}"),
            }
        }
    }
    for api in [Api::OpenAiCompletions, Api::AnthropicMessages] {
        for (text, kind) in [("so far", None), ("", Some(ErrorKind::Overflow))] {
            let answer = Answer {
                text: text.to_owned(),
                finish: Some(Finish::WindowFull),
                ..Answer::default()
            };
            let fake = start([Step::answer(answer)]);
            let found = model(&fake, api).summarize(request()).await;
            assert_eq!(
                found.map(|summary| summary.cut_off).map_err(|e| e.kind()),
                kind.map_or(Ok(true), Err)
            );
        }
    }
}

#[tokio::test]
async fn waits_silence_and_endlessness_are_bounded() {
    let short = Duration::from_millis(60);
    for api in Api::ALL {
        let after = Failure::new(FailureKind::RateLimited).retry_after(RetryAfter::Seconds(7));
        let fake = start([Step::error(after)]);
        let error = model(&fake, api).ask(&request()).await.unwrap_err();
        assert_eq!(error.wait(), Some(Duration::from_secs(7)));

        for (step, timeouts) in [
            (Step::hang(), Timeouts { first_byte: short, ..Timeouts::default() }),
            (
                Step::text("a b c d").stalled_at(Moment::AfterEvents(2)),
                Timeouts { idle: short, ..Timeouts::default() },
            ),
            (
                Step::text("a b c d").stalled_at(Moment::AfterHeaders),
                Timeouts { whole: short, ..Timeouts::default() },
            ),
        ] {
            let fake = start([step]);
            let error = model_with(&fake, api, timeouts).ask(&request()).await.unwrap_err();
            assert!(error.kind() == ErrorKind::Timeout && error.is_retryable(), "{api}: {error}");
        }
        let fake = start([Step::endless("and so on ")]);
        let summary = model(&fake, api).summarize(request()).await.unwrap();
        assert!(summary.cut_off && summary.text.len() < 1_000_000, "{api}");
    }
    let elsewhere = start([Step::text("stolen")]);
    let fake = start([Step::redirect(format!("{}/v1/chat/completions", elsewhere.url()))]);
    let error = model(&fake, Api::OpenAiCompletions).ask(&request()).await.unwrap_err();
    assert_eq!((error.kind(), elsewhere.requests().len()), (ErrorKind::Upstream, 0));
}

#[tokio::test]
async fn embeddings_of_both_kinds() {
    let fake = FakeProvider::builder().dimensions(8).start().unwrap();
    let texts: Vec<String> = (0..70).map(|n| format!("text {n}")).collect();
    let mut spaces = Vec::new();
    for api in [EmbedApi::OpenAi, EmbedApi::Ollama] {
        let endpoint = Endpoint::new(&fake.url(), Api::OpenAiCompletions).unwrap();
        let of = |dimensions| {
            HttpEmbedder::new(
                "fake",
                "e",
                dimensions,
                api,
                endpoint.clone(),
                Arc::new(Client::default()),
            )
            .unwrap()
        };
        let vectors = of(8).embed(&texts).await.unwrap();
        assert!(vectors.len() == 70 && vectors.iter().all(|v| v.len() == 8));
        assert_eq!(of(9).embed(&texts).await.unwrap_err().kind(), ErrorKind::Corrupt);
        spaces.push(vectors);
    }
    assert_eq!(spaces[0], spaces[1]);
}
