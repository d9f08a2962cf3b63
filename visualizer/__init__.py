"""The app that a person sees: settings, runs, views, figures and components."""
