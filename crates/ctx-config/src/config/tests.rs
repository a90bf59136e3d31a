//! The configuration as a whole.

use super::*;
use crate::{ContextTokens, ConversationModels, Models, RunningConfig};

#[test]
fn a_wrong_value_names_its_key() {
    let error = Config::parse("{ agents: { running: { memory_compact_ratio: 'x' } } }");
    assert!(error.unwrap_err().to_string().contains("agents.running.memory_compact_ratio"));
}

#[test]
fn a_section_must_be_an_object() {
    for text in ["{ agents: 5 }", "{ agents: { defaults: [] } }"] {
        let error = Config::parse(text).unwrap_err();
        assert!(error.to_string().contains("expected an object"), "{text}: {error}");
        assert!(error.hint_text().is_some());
    }
    assert!(Config::parse("{ agents: [] }").is_err());
}

#[test]
fn an_empty_file_is_the_defaults() {
    for text in ["", "\n", "// nothing yet", "{}"] {
        let config = Config::parse(text).unwrap();
        let defaults = Config::default().effective().unwrap();
        assert_eq!(config.effective().unwrap(), defaults, "{text}");
    }
}

/// Parses an invalid text; checks the kind and the hint and returns the error's text.
fn refused(text: &str) -> String {
    let error = Config::parse(text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.hint_text().is_some(), "{error}");
    error.to_string()
}

#[test]
fn invalid_values_of_the_right_type_are_refused_with_key_value_and_range() {
    let names: Vec<_> = Profile::all().map(|profile| profile.to_string()).collect();
    let names = crate::expected::any_of(&names);
    for (text, words) in [
        (
            "agents: { defaults: { contextTokens: 0 } }",
            "contextTokens': expected a whole number from 1 to 4294967295 (value: 0)",
        ),
        ("agents: { running: { max_input_length: 0 } }", "max_input_length"),
        ("agents: { running: { memory_compact_ratio: 1.5 } }", "from 0.1 to 1 (value: 1.5)"),
        ("agents: { running: { memory_reserve_ratio: -1 } }", "from 0 to 1 (value: -1)"),
        ("agents: { running: { tool_result_compact_keep_n: 2.5 } }", "expected a whole number"),
        ("profile: 7", &format!("'profile': expected {names} (value: 7)")),
    ] {
        let error = refused(&format!("{{ {text} }}"));
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn an_invalid_model_is_refused() {
    for (row, words) in [
        ("contextWindow: 0", "p.models[1].contextWindow': expected a whole number from 1"),
        ("contextTokens: 0", "p.models[1].contextTokens"),
        ("maxTokens: '8k'", "p.models[1].maxTokens"),
        ("cost: 5", "cost': expected an object (value: 5)"),
        ("cost: { input: -1 }", "cost.input': expected a number of 0 or more (value: -1)"),
        ("cost: { cacheRead: -1 }", "cost.cacheRead"),
        ("cost: { cacheWrite: -0.1 }", "cost.cacheWrite"),
        ("cost: { output: Infinity }", "cost.output': inf"),
        ("id: ''", "'models.providers.p.models[1].id': expected the name"),
        ("name: 'no id'", "'models.providers.p.models[1].id': expected the name"),
    ] {
        let id = if row.starts_with("id") || row.contains("no id") { "" } else { "id: 'n'," };
        let error = refused(&format!(
            "{{ models: {{ providers: {{ p: {{ models: [{{ id: 'm' }}, {{ {id} {row} }}] }} }} }} }}"
        ));
        assert!(error.contains(words), "{row}: {error}");
    }
    let error = refused("{ models: { providers: { p: { models: {} } } } }");
    assert!(error.contains("models': expected a list"), "{error}");
}

#[test]
fn explicit_keys_override_the_profile() {
    let config =
        Config::parse("{ profile: 'copaw', agents: { running: { max_input_length: 9000 } } }");
    let running = config.unwrap().section::<RunningConfig>().unwrap();
    assert_eq!((running.max_input_length, running.memory_compact_ratio), (9_000, 0.75));
}

#[test]
fn a_section_is_read_again_after_a_change() {
    let config = "{ agents: { defaults: { contextTokens: 60000 },
        list: [{ id: 'ops', contextTokens: 32000, subagents: { contextTokens: 16000 } }] } }";
    let config = Config::parse(config).unwrap();
    let of = |config: &Config| config.section::<ContextTokens>().unwrap().0.unwrap();
    let (all, ops) = (of(&config), of(&config.for_agent(Some("ops"))));
    let subagents = of(&config.for_subagents("ops").for_agent(Some("ops")));
    assert!(all > ops && ops > subagents && of(&config) == all);
    let over = serde_json::json!({ "agents": { "defaults": { "contextTokens": 90000 } } });
    assert!(of(&config.overlaid(over).unwrap()) > all);
}

#[test]
fn random_text_is_refused_without_a_crash() {
    for text in ["[", "nul", "{ profile: 'best' }", "[1]", "3", &"[".repeat(100_000)] {
        assert_eq!(Config::parse(text).unwrap_err().kind(), ErrorKind::Config, "{text:.20}");
    }
}

#[test]
fn the_schema_does_not_mention_rust() {
    let text = Config::schema().to_string();
    assert!(text.contains("agents.running"));
    for rust in ["```", "# Notes", "\"title\"", "\"description\":\"\""] {
        assert!(!text.contains(rust), "{rust}");
    }
    assert_eq!(without_rust("A.\n\n# Notes\n\nB.\n\n# Example\n\n```\nc\n```"), "A.\n\nB.");
}

#[test]
fn a_key_in_the_configuration_is_never_printed() {
    let provider = |inner: &str| format!("{{ models: {{ providers: {{ p: {{ {inner} }} }} }} }}");
    let sound = provider(
        "baseUrl: 'https://me:sk-secret@host/v1', apiKey: 'sk-secret', headers: { 'x-a': 'sk-secret', 'x-b': '$NAME', 'x-c': '$sk-secret' }",
    );
    let config = Config::parse(&sound).unwrap();
    let shown = config.effective().unwrap();
    let provider_shown = &shown["models"]["providers"]["p"];
    assert_eq!(provider_shown["headers"]["x-b"], "$NAME");
    assert_eq!(provider_shown["apiKey"], "(hidden)");
    assert_eq!(provider_shown["baseUrl"], "https://(hidden)@host/v1");
    let models: Models = config.section().unwrap();
    assert_eq!(models.providers["p"].api_key.as_ref().unwrap().expose(), "sk-secret");
    assert!(!format!("{shown} {models:?}").contains("sk-secret"));
    for misplaced in [
        provider("apiKey: ['sk-secret']"),
        provider("apiKey: { key: 'sk-secret' }"),
        provider("headers: 'sk-secret'"),
        provider("headers: { a: ['sk-secret'] }"),
        "{ models: { providers: { p: 'sk-secret' } } }".to_owned(),
        "{ models: 'sk-secret' }".to_owned(),
    ] {
        let text = refused(&misplaced);
        assert!(!text.contains("sk-secret") && text.contains("(hidden)"), "{text}");
    }
}

#[test]
fn invalid_rows_of_the_list_of_agents_are_refused() {
    for (list, words) in [
        ("[{ id: 'a' }, { id: 'a' }]", "agents.list[1].id"),
        ("[{ contextEngine: 'x' }]", "agents.list[0].id"),
        ("[{ id: 'a', modle: 'x' }]", "unknown key 'agents.list[0].modle'"),
        ("[{ id: 'a', model: 'x' }]", "agents.list[0].model': expected an object"),
        ("[{ id: 'a', contextTokens: 0 }]", "agents.list[0].contextTokens"),
        ("[{ id: 'a', profile: 'x' }]", "agents.list[0].profile"),
        ("[{ id: 'a', subagents: { id: 'b' } }]", "unknown key 'agents.list[0].subagents.id'"),
        ("[{ id: 'a', subagents: { model: { primary: ' ' } } }]", "agents.list[0].subagents"),
        ("{ a: {} }", "expected a list"),
    ] {
        let error = refused(&format!("{{ agents: {{ list: {list} }} }}"));
        assert!(error.contains(words), "{list}: {error}");
    }
    let config = Config::parse("{ agents: { list: [{ id: 'a', contextEngine: 'x' }] } }").unwrap();
    let list: AgentList = config.section().unwrap();
    assert_eq!(list.0[0].context_engine.as_deref(), Some("x"));
    assert_eq!(config.effective().unwrap()["agents"]["list"][0]["id"], "a");
}

#[test]
fn an_agent_and_its_subagents_differ_in_window_profile_and_model() {
    let config = Config::parse(
        "{ profile: 'openclaw', agents: {
            defaults: { contextTokens: 60000, model: { primary: 'p/all', fallbacks: ['p/more'] } },
            list: [{ id: 'ops', contextTokens: 32000, profile: 'copaw', model: { primary: 'p/ops' },
                     subagents: { contextTokens: 16000, profile: 'pi' } }],
        } }",
    )
    .unwrap();
    let of = |config: &Config| {
        let tokens = config.section::<ContextTokens>().unwrap().0.unwrap();
        (
            tokens,
            config.profile().name(),
            config.section::<ConversationModels>().unwrap().chain().join(" "),
        )
    };
    let models = "p/ops p/more".to_owned();
    assert_eq!(of(&config.for_agent(Some("ops"))), (32_000, "copaw", models.clone()));
    let theirs = config.for_subagents("ops").for_agent(Some("ops"));
    assert_eq!(of(&theirs), (16_000, "pi", models));
    let all = (60_000, "openclaw", "p/all p/more".to_owned());
    for other in [config.for_agent(Some("other")), config.for_agent(None)] {
        assert_eq!(of(&other), all);
    }
    assert_eq!(of(&config.for_subagents("other").for_agent(Some("other"))), all);
    // The profile given for a run has precedence.
    let given =
        config.clone().with_profile(Profile::find("ponybunny").unwrap()).for_agent(Some("ops"));
    assert_eq!(given.profile().name(), "ponybunny");
    assert_eq!(config.effective().unwrap()["agents"]["list"][0]["contextTokens"], 32_000);
}

#[test]
fn the_proxy_has_a_profile_of_its_own_unless_one_is_named() {
    let name = |text: &str| Config::parse(text).unwrap().for_proxy().profile().name();
    assert_eq!(name("{}"), "proxy");
    assert_eq!(name("{ models: {} }"), "proxy");
    assert_eq!(name("{ profile: 'openclaw' }"), "openclaw");
}
