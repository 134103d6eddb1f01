//! Maps keys to actions.

use super::events::VIEWS;
use super::model::Action;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Lines of a page.
const PAGE: usize = 15;

/// Action that a key asks for. It depends on whether a filter is being typed.
pub(super) fn action(event: &Event, is_typing: bool) -> Option<Action> {
    let Event::Key(key) = event else {
        return None;
    };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Action::Quit);
    }

    if is_typing {
        typed(key)
    } else {
        pressed(key)
    }
}

fn typed(key: &KeyEvent) -> Option<Action> {
    match key.code {
        KeyCode::Enter => Some(Action::Accept),
        KeyCode::Esc => Some(Action::Drop),
        KeyCode::Backspace => Some(Action::Erase),
        KeyCode::Char(character) => Some(Action::Type(character)),
        _ => None,
    }
}

fn pressed(key: &KeyEvent) -> Option<Action> {
    Some(match key.code {
        KeyCode::Up | KeyCode::Char('k') => Action::Up(1),
        KeyCode::Down | KeyCode::Char('j') => Action::Down(1),
        KeyCode::PageUp => Action::Up(PAGE),
        KeyCode::PageDown => Action::Down(PAGE),
        KeyCode::Home => Action::First,
        KeyCode::End => Action::Last,
        KeyCode::Enter | KeyCode::Right => Action::Enter,
        KeyCode::Backspace | KeyCode::Esc | KeyCode::Left => Action::Back,
        KeyCode::Tab => Action::NextView,
        KeyCode::Char('s') => Action::Sort,
        KeyCode::Char('f') => Action::FailedOnly,
        KeyCode::Char('p' | ' ') => Action::Pause,
        KeyCode::Char('h' | '?') => Action::Help,
        KeyCode::Char('/') => Action::Filter,
        KeyCode::Char('q') => Action::Quit,
        KeyCode::Char(digit) => {
            let number = digit.to_digit(10)?.checked_sub(1)?;
            Action::View(*VIEWS.get(number as usize)?)
        }
        _ => return None,
    })
}
