//! Two small pictures, as base64 of PNG files.

/// Their type.
pub(crate) const MIME: &str = "image/png";

/// A bar chart in which three bars stand out.
pub(crate) const DASHBOARD: &str = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAgCAAAAACH9iFYAAAAQ0lEQVR42mP4SiFgGDVgKBmgoaFBuQHYDKGPATDNowaMGjBqwKgBRBuArgDGRzYAXQ0DNoXYNGEzBEQzEFJICA+8AQCM34NF8TUk3gAAAABJRU5ErkJggg==";

/// Three lines, crossed by two.
pub(crate) const TIMELINE: &str = "iVBORw0KGgoAAAANSUhEUgAAADAAAAAYCAAAAACZliEAAAAAKUlEQVR42mP4RSJgGKwaRIgDGDaI4DBVBJeTRjXg1TAaD0M7HgZHngYAB0zi6Ed64O4AAAAASUVORK5CYII=";
