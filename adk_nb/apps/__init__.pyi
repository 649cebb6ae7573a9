from adk_nb.apps.app import App as App
