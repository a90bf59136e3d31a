//! Compares the effective values of each profile with the files in `profiles/`. `openclaw.txt`
//! contains all values. Each other file contains the lines in which its profile differs.
//! `UPDATE_EXPECT=1 cargo test -p ctx-tests profiles` writes the files.

use ctx_config::{Config, Profile, SystemRules};
use ctx_core::{Block, Image, Message, RawJson, Result, Role, Tokens, ToolCall};
use ctx_layers::tool_guard;
use ctx_runtime::{Resolved, SessionSpec};
use expect_test::expect_file;
use serde_json::Value;

/// Keys that apply only if the profile's system or the user sets them.
const RUNNING: &str = "{ agents: { running: {
    max_input_length: 64000, memory_compact_ratio: 0.6, memory_reserve_ratio: 0.2,
    enable_tool_result_compact: true, tool_result_compact_keep_n: 2,
} } }";

/// Adds one line for each value: its path and its JSON.
fn flatten(path: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(&path, value, lines);
            }
        }
        value => lines.push(format!("{path} = {value}")),
    }
}

fn resolve(config: &Config, model: Option<&str>) -> Result<Resolved> {
    let model = model.map(str::to_owned);
    SessionSpec { model, ..SessionSpec::default() }.resolve(config)
}

/// Adds the values that layers and sessions derive from the sections.
fn derived(name: &str, config: &Config, lines: &mut Vec<String>) -> Result<()> {
    let session = resolve(config, None)?;
    let (compaction, offload) = (&session.compaction, tool_guard::Config::resolve(config)?.offload);
    let own = ctx_memory::Config::for_engine(config, "legacy")?;
    let by_engine = ctx_memory::Config::for_engine(config, "memory-context")?;
    let mut line = |key: &str, value: &dyn std::fmt::Debug| {
        lines.push(format!("{name}: {key} = {value:?}"));
    };
    line("window", &(session.window.tokens, session.window.source.name()));
    line("reserve of 100000", &compaction.reserve(Tokens(100_000)));
    line("offload", &(offload.enabled, offload.keep_n));
    line("memory", &own.enabled);
    line("memory by engine", &(by_engine.enabled, by_engine.max_segments, by_engine.search.b));
    for model in ["gemini-2.0-flash", "claude-opus-4-5", "gpt-4o"] {
        let session = resolve(config, Some(model))?;
        let input = session.prices.map(|prices| prices.input);
        line(model, &(session.native, session.window.tokens, session.reserve, input));
    }
    Ok(())
}

/// Returns the effective values of a profile, one per line.
fn values(profile: Profile) -> Result<Vec<String>> {
    let config = Config::for_profile(profile);
    let mut lines = Vec::new();
    flatten("", &config.effective()?, &mut lines);
    let counter = resolve(&config, None)?.counter;
    let image = Block::Image(Image { mime_type: String::new(), data: "".into(), is_url: false });
    let call = ToolCall::new("c", "read", RawJson::from_text(r#"{"path":"a.rs"}"#));
    for (name, message) in [
        ("text of 1200 characters", Message::text(Role::User, "x".repeat(1_200))),
        ("tool call", Message::new(Role::Assistant, vec![Block::ToolCall(call)])),
        ("image of the user", Message::new(Role::User, vec![image.clone()])),
        ("other image", Message::new(Role::Assistant, vec![image])),
    ] {
        lines.push(format!("tokens of a {name} = {}", counter.message(&message)));
    }
    lines.push(format!("catalogue = {:?}", config.section::<SystemRules>()?.catalogue));
    derived("alone", &config, &mut lines)?;
    derived("with agents.running", &Config::parse(RUNNING)?.with_profile(profile), &mut lines)?;
    Ok(lines)
}

#[test]
fn each_profile_has_the_expected_values() -> Result<()> {
    let base = values(Profile::default())?;
    for profile in Profile::all() {
        let mut lines = values(profile)?;
        if profile != Profile::default() {
            lines.retain(|line| !base.contains(line));
        }
        let path = format!("profiles/{profile}.txt");
        expect_file![path].assert_eq(&format!("{}\n", lines.join("\n")));
    }
    Ok(())
}

#[test]
fn a_profile_sets_only_valid_keys_and_its_own_section() {
    for profile in Profile::all() {
        let mut values = profile.values().clone();
        values.as_object_mut().expect("an object").remove("system");
        let read = Config::from_value(values);
        assert!(read.is_ok(), "{profile}: {}", read.unwrap_err());
    }
}
