//! Limits of time, cost and context window.

use std::sync::Arc;
use std::time::Duration;

use ctx_compaction::{CallLog, Config, Rung, Strategy, SummaryJob, ladder};
use ctx_core::{ErrorKind, Message, Role, Summarizer, SummaryModels, Timer, Tokens};
use ctx_testkit::{Reply, VirtualTimer};

use super::{GOOD, calls, climb, climb_by, job, job_of, model, previous, talk};

const STRATEGIES: [Strategy; 3] = [Strategy::Rolling, Strategy::MultiPart, Strategy::Single];

#[test]
fn a_hanging_model_is_abandoned_and_the_next_one_has_its_time() {
    for strategy in STRATEGIES {
        let config = Config { strategy, ..Config::default() };
        let a = Arc::new(model("a").otherwise(Reply::Hang));
        let b = Arc::new(model("b"));
        let (draft, log, timer) = climb(&job(config.clone()), &[&a, &b]);
        assert_eq!(draft.unwrap().model, "b", "{strategy:?}");
        assert_eq!(timer.elapsed(), Duration::from_secs(150), "{strategy:?}");
        assert_eq!(log.calls[0].error.as_deref(), Some("no answer after 150 s"));
        assert_eq!(log.calls[0].millis, 150_000);

        let (draft, log, timer) = climb(&job(config), &[&a]);
        assert_eq!(draft, None, "{strategy:?}");
        assert_eq!(timer.elapsed(), Duration::from_secs(300), "{strategy:?}");
        assert!(log.notes[0].contains("time"), "{:?}", log.notes);
    }
}

#[test]
fn slow_models_waits_and_retries_together_stay_inside_the_deadline() {
    let slow = |reply| Reply::After(Duration::from_secs(45), Box::new(reply));
    for strategy in STRATEGIES {
        let timer = VirtualTimer::default();
        let fail = slow(Reply::RetryAfter(Duration::from_secs(9)));
        let chain: Vec<_> = ["a", "b", "c", "d", "e"]
            .map(|name| {
                Arc::new(model(name).with_timer(Arc::new(timer.clone())).otherwise(fail.clone()))
            })
            .into();
        let config = Config { strategy, timeout_seconds: 200, ..Config::default() };
        let (draft, log) = climb_by(&job(config), &chain.iter().collect::<Vec<_>>(), &timer);
        assert_eq!(draft, None);
        assert!(timer.elapsed() <= Duration::from_secs(200), "{:?}", timer.elapsed());
        assert!(log.calls.len() >= 3);
    }
}

#[test]
fn parts_run_at_the_same_time() {
    let timer = VirtualTimer::default();
    let slow = Reply::After(Duration::from_secs(60), Box::new(Reply::Faithful));
    let a = Arc::new(model("a").with_timer(Arc::new(timer.clone())).otherwise(slow));
    let config = Config { strategy: Strategy::MultiPart, ..Config::default() };
    let (draft, log) = climb_by(&job(config), &[&a], &timer);
    assert!(draft.is_some());
    assert_eq!(log.calls.len(), 4, "three parts and a merge: {:?}", calls(&log));
    assert_eq!(timer.elapsed(), Duration::from_secs(120));
}

#[test]
fn a_part_that_fails_ends_the_others_and_all_of_it_is_in_the_log() {
    let timer = VirtualTimer::default();
    let fails = Reply::After(Duration::from_secs(1), Box::new(Reply::Error(ErrorKind::Capability)));
    let a = model("a").with_timer(Arc::new(timer.clone())).with_price(2.0);
    let a = Arc::new(a.replies([Reply::Hang, fails, Reply::Hang]));
    let b = Arc::new(model("b"));
    let config = Config { strategy: Strategy::MultiPart, ..Config::default() };
    let (draft, log) = climb_by(&job(config), &[&a, &b], &timer);
    assert_eq!(draft.unwrap().model, "b");
    assert_eq!(timer.elapsed(), Duration::from_secs(1), "nobody waits for the parts that hang");
    let failed: Vec<_> = log.calls.iter().filter(|call| !call.ok).collect();
    assert_eq!(failed.len(), 3, "{:?}", calls(&log));
    let given_up = Some("cancelled before it answered");
    assert_eq!(failed.iter().filter(|call| call.error.as_deref() == given_up).count(), 2);
    assert!(
        failed.iter().filter(|call| call.cost_usd.is_some()).count() == 2,
        "charged all the same"
    );
}

#[test]
fn what_was_done_is_in_the_log_when_the_caller_goes_away() {
    let job = job(Config::default());
    let timer = VirtualTimer::default();
    let a = Arc::new(model("a").replies([Reply::Retryable(ErrorKind::Upstream), Reply::Hang]));
    let models = SummaryModels { chain: vec![a], timer: Arc::new(timer.clone()) };
    let mut log = CallLog::default();
    timer.run(async {
        let work = Box::pin(ladder(&job, &models, &mut log));
        let leave = Box::pin(timer.sleep(Duration::from_secs(5)));
        futures_util::future::select(work, leave).await;
    });
    assert_eq!(calls(&log), ["a: summary!", "a: summary!"]);
    assert_eq!(log.calls[1].error.as_deref(), Some("cancelled before it answered"));
}

#[test]
fn no_call_is_made_that_could_exceed_the_spend_cap() {
    // Each call is at most about 1,000 + 1,000 tokens: at 1,000 USD per million, about 2 USD.
    let capped = |usd| Config { max_spend_usd: Some(usd), ..Config::default() };
    let dear = || Arc::new(model("dear").with_price(1_000.0));
    let cheap = Arc::new(model("cheap").with_price(0.1));
    let free = Arc::new(model("free"));

    let (draft, log, _) = climb(&job(capped(0.5)), &[&dear()]);
    assert_eq!((draft, log.calls.len(), log.cost_usd), (None, 0, None));
    assert!(log.notes[0].contains("maxSpendUsd"), "{:?}", log.notes);

    let (draft, log, _) = climb(&job(capped(0.5)), &[&dear(), &cheap]);
    assert_eq!(draft.unwrap().model, "cheap");
    assert!(log.cost_usd.unwrap() < 0.01);

    let (draft, log, _) = climb(&job(capped(0.0)), &[&cheap, &free]);
    assert_eq!(draft.unwrap().model, "free");
    assert!(log.notes.iter().any(|note| note.contains("unknown price")), "{:?}", log.notes);

    let (draft, log, _) = climb(&job(capped(5.0)), &[&dear()]);
    assert!(draft.is_some() && log.cost_usd.unwrap() > 0.5);
    assert_eq!(log.cost_usd, log.calls[0].cost_usd);
}

#[test]
fn calls_that_fail_half_way_are_charged_and_refusals_are_not() {
    // At 10 USD per million, a call is estimated at about 0.02 USD.
    let config = || Config { max_spend_usd: Some(0.05), ..Config::default() };
    let chain = |reply: Reply| {
        ["a", "b", "c", "d"]
            .map(|name| Arc::new(model(name).with_price(10.0).otherwise(reply.clone())))
    };
    for strategy in STRATEGIES {
        for kind in [ErrorKind::Upstream, ErrorKind::Timeout, ErrorKind::Corrupt] {
            let models = chain(Reply::Retryable(kind));
            let config = Config { strategy, ..config() };
            let (draft, log, _) = climb(&job(config), &models.each_ref());
            assert_eq!(draft, None);
            let spent = log.cost_usd.unwrap();
            assert!((0.02..=0.05).contains(&spent), "{strategy:?} {kind:?}: {spent}");
            let all: f64 = log.calls.iter().filter_map(|call| call.cost_usd).sum();
            assert!((all - spent).abs() < 1e-9, "{strategy:?} {kind:?}");
            assert!(log.calls.len() <= 5, "{:?}", calls(&log));
        }
    }
    for kind in [ErrorKind::Overflow, ErrorKind::Capability] {
        let models = chain(Reply::Error(kind));
        let (_, log, _) = climb(&job(config()), &models.each_ref());
        assert!(log.calls.len() >= 4, "everybody is asked: {:?}", calls(&log));
        assert_eq!(log.cost_usd, None, "{kind:?}");
    }
}

#[test]
fn what_a_model_thinks_has_its_room_and_its_price() {
    let thinking = |price, overhead| {
        let a = model("a").with_window(Tokens(16_000)).with_price(price);
        Arc::new(a.with_answer_overhead(Tokens(overhead)))
    };
    // At 10 USD per million, 4,000 more tokens cost 0.04 USD more.
    let capped = || Config { max_spend_usd: Some(0.05), ..Config::default() };
    let (draft, ..) = climb(&job(capped()), &[&thinking(10.0, 0)]);
    assert!(draft.is_some());
    let (draft, log, _) = climb(&job(capped()), &[&thinking(10.0, 4_000)]);
    assert_eq!((draft, log.calls.len()), (None, 0), "{:?}", log.notes);

    let counter = ctx_core::Counter::default();
    for strategy in STRATEGIES {
        let a = thinking(0.0, 4_000);
        let config = Config { strategy, ..Config::default() };
        let (draft, ..) = climb(&job_of(config, talk(1_500)), &[&a]);
        assert!(draft.is_some(), "{strategy:?}");
        for request in a.asked() {
            let prompt = counter.text(&request.system) + counter.text(&request.prompt);
            assert!(prompt + request.max_tokens + Tokens(4_000) <= a.window(), "{strategy:?}");
        }
    }
    let (draft, log, _) = climb(&job(Config::default()), &[&thinking(0.0, 15_000)]);
    assert_eq!((draft, log.calls.len()), (None, 0), "{:?}", log.notes);
}

/// A session is counted with its profile's counter, at a quarter of a token for a Chinese
/// character; a model uses a whole one.
#[test]
fn chinese_fits_the_window_and_the_cap_by_its_true_size() {
    let honest = ctx_core::Counter::new(ctx_core::CounterKind::Cjk);
    let line =
        |n: usize| format!("第{n}步:修复 src/http.rs 里的重试循环,不要改动缓存。").repeat(12);
    let messages: Vec<_> = (0..150).map(|n| Message::text(Role::User, line(n))).collect();
    for counter in ctx_core::CounterKind::ALL.iter().copied().map(ctx_core::Counter::new) {
        for strategy in STRATEGIES {
            for previous in [None, previous(&"- 之前修复了重试循环。\n".repeat(3_000))] {
                let a = Arc::new(model("a").with_window(Tokens(16_000)));
                let mut job = job_of(Config { strategy, ..Config::default() }, messages.clone());
                (job.counter, job.previous) = (counter, previous);
                job.sizes =
                    job.messages.iter().map(|said| counter.message(&said.message)).collect();
                let (draft, log, _) = climb(&job, &[&a]);
                assert!(draft.is_some(), "{strategy:?} {:?}", log.notes);
                for request in a.asked() {
                    let prompt = honest.text(&request.system) + honest.text(&request.prompt);
                    assert!(prompt + request.max_tokens <= Tokens(16_000), "{strategy:?}");
                }
            }
        }
    }
    // 0.3 USD pays for 30,000 tokens: more than the profile's count, less than the true size.
    let config =
        Config { strategy: Strategy::Single, max_spend_usd: Some(0.3), ..Config::default() };
    let a = Arc::new(model("a").with_price(10.0));
    let (_, log, _) = climb(&job_of(config, messages), &[&a]);
    assert_eq!(log.calls.len(), 0, "{:?}", log.cost_usd);
}

#[test]
fn parallel_parts_do_not_overdraw_together() {
    let config =
        Config { strategy: Strategy::MultiPart, max_spend_usd: Some(3.0), ..Config::default() };
    let a = Arc::new(model("a").with_price(1_000.0).otherwise(Reply::Hang));
    let (draft, log, _) = climb(&job(config), &[&a]);
    assert_eq!(draft, None);
    assert!((1..3).contains(&a.asked().len()), "not all three parts: {:?}", calls(&log));
    assert!(log.cost_usd.unwrap_or(0.0) <= 3.0);
}

/// Everything that can make a prompt large, in every window, with every strategy.
#[test]
fn no_request_is_larger_than_the_window_of_its_model() {
    let giant = Message::text(Role::User, "giant steps ".repeat(75_000));
    let results = (0..40)
        .map(|n| Message::tool_result(format!("c{n}"), "found in src/http.rs ".repeat(3_000)));
    let long = (0..30).map(|n| Message::text(Role::Assistant, format!("step {n} ").repeat(900)));
    let messages: Vec<_> =
        std::iter::once(giant).chain(talk(20)).chain(results).chain(long).collect();
    let counter = ctx_core::Counter::default();
    for strategy in STRATEGIES {
        for window in [2_000, 4_000, 8_000, 32_000, 200_000, 2_000_000] {
            for (nth, turn_start) in [None, Some(0), Some(30)].into_iter().enumerate() {
                // If not all cases run, one of three, a different one for each window.
                if ctx_testkit::cases(10) < 10 && nth as u32 != window / 2_000 % 3 {
                    continue;
                }
                let a = Arc::new(model("a").with_window(Tokens(window)));
                let mut config = Config { strategy, ..Config::default() };
                config.custom_instructions = Some("words ".repeat(9_000));
                let mut job = job_of(config, messages.clone());
                job.groups =
                    (0..messages.len() as u32).map(|n| if n > 40 { 40 } else { n }).collect();
                job.focus = Some("on everything ".repeat(9_000));
                job.previous = previous(&"- it was said before\n".repeat(9_000));
                job.turn_start = turn_start;
                job.summary_budget = Tokens(13_107);
                let (draft, log, _) = climb(&job, &[&a]);
                for request in a.asked() {
                    let prompt = counter.text(&request.system) + counter.text(&request.prompt);
                    assert!(prompt + request.max_tokens <= Tokens(window), "{window} {strategy:?}");
                }
                let is_large = window >= 8_000;
                assert!(draft.is_some() || !is_large, "{window} {strategy:?} {:?}", log.notes);
                // 225,000 tokens with the margin exceed half of all windows but the largest.
                let rung = draft.map(|draft| draft.rung);
                let expected =
                    if window == 2_000_000 { Rung::Model } else { Rung::WithoutOversized };
                assert!(rung.is_none() || rung == Some(expected), "{window}: {rung:?}");
            }
        }
    }
}

#[test]
fn a_budget_too_small_for_a_summary_asks_nobody() {
    let a = Arc::new(model("a").otherwise(Reply::Text(GOOD.into())));
    let job = SummaryJob { summary_budget: Tokens(30), ..job(Config::default()) };
    let (draft, log, _) = climb(&job, &[&a]);
    assert_eq!((draft, a.asked().len()), (None, 0));
    assert_eq!(log.notes, ["no model was called: 30 tokens are too few for a summary"]);
}
