SELECT pg_catalog.set_config('search_path', '', false);
CREATE TABLE public.adk_internal_metadata (
    key character varying(128) NOT NULL,
    value text NOT NULL
);
CREATE TABLE public.app_states (
    app_name character varying(128) NOT NULL,
    state jsonb NOT NULL,
    state_text text,
    update_time double precision NOT NULL,
    changes bigint NOT NULL
);
CREATE TABLE public.consumed (
    session bigint NOT NULL,
    key character varying(128) NOT NULL
);
CREATE TABLE public.events (
    id character varying(128) NOT NULL,
    app_name character varying(128) NOT NULL,
    user_id character varying(128) NOT NULL,
    session_id character varying(128) NOT NULL,
    seq bigint NOT NULL,
    invocation_id character varying(128) NOT NULL,
    "timestamp" double precision NOT NULL,
    event_data jsonb NOT NULL,
    event_text text
);
CREATE TABLE public.initial_states (
    session bigint NOT NULL,
    value text NOT NULL
);
CREATE TABLE public.intents (
    place bigint NOT NULL,
    session bigint NOT NULL,
    run_id character varying(128) NOT NULL,
    key character varying(128) NOT NULL,
    attempt bigint NOT NULL,
    intent text NOT NULL,
    started double precision NOT NULL,
    finished double precision,
    outcome text
);
ALTER TABLE public.intents ALTER COLUMN place ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.intents_place_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.leases (
    session bigint NOT NULL,
    fence bigint NOT NULL,
    run_id text,
    owner text NOT NULL,
    since double precision NOT NULL,
    expires double precision NOT NULL
);
CREATE TABLE public.runs (
    place bigint NOT NULL,
    session bigint NOT NULL,
    run_id character varying(128) NOT NULL,
    version text NOT NULL,
    owner text NOT NULL,
    started double precision NOT NULL,
    outcome text
);
ALTER TABLE public.runs ALTER COLUMN place ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.runs_place_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.sessions (
    number bigint NOT NULL,
    app_name character varying(128) NOT NULL,
    user_id character varying(128) NOT NULL,
    id character varying(128) NOT NULL,
    state jsonb NOT NULL,
    state_text text,
    create_time double precision NOT NULL,
    update_time double precision NOT NULL,
    seq bigint NOT NULL
);
ALTER TABLE public.sessions ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.sessions_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.user_states (
    app_name character varying(128) NOT NULL,
    user_id character varying(128) NOT NULL,
    state jsonb NOT NULL,
    state_text text,
    update_time double precision NOT NULL,
    changes bigint NOT NULL
);
INSERT INTO public.adk_internal_metadata VALUES ('adk_nb_schema_version', '4');
INSERT INTO public.app_states VALUES ('bank', '{"rate": 1.5}', NULL, 1795840584.1452754, 1);
INSERT INTO public.events VALUES ('eae6e7ba-9af7-4a2c-82b0-a6b48841771c', 'bank', 'ada', 's', 1, 'e-83e98ea9-994d-4727-8f44-7cdea281fd61', 1795840584.5199542, '{"id": "eae6e7ba-9af7-4a2c-82b0-a6b48841771c", "author": "user", "content": {"role": "user", "parts": [{"text": "I am Ada."}]}, "timestamp": 1795840584.5199542, "invocationId": "e-83e98ea9-994d-4727-8f44-7cdea281fd61"}', NULL);
INSERT INTO public.events VALUES ('97528973-7dbd-4a59-b698-3204c425ee74', 'bank', 'ada', 's', 2, 'e-83e98ea9-994d-4727-8f44-7cdea281fd61', 1795840585.4313433, '{"id": "97528973-7dbd-4a59-b698-3204c425ee74", "author": "clerk", "content": {"role": "model", "parts": [{"text": "Hello Ada."}]}, "timestamp": 1795840585.4313433, "invocationId": "e-83e98ea9-994d-4727-8f44-7cdea281fd61", "turnComplete": true}', NULL);
INSERT INTO public.events VALUES ('ccc4f438-38a9-4c3c-9806-45e1520695b9', 'bank', 'ada', 's', 3, 'e-710acc49-8291-487d-89ea-2d0fadda945c', 1795840585.477536, '{"id": "ccc4f438-38a9-4c3c-9806-45e1520695b9", "author": "user", "content": {"role": "user", "parts": [{"text": "Pay 250 euros to Anna"}]}, "timestamp": 1795840585.477536, "invocationId": "e-710acc49-8291-487d-89ea-2d0fadda945c"}', NULL);
INSERT INTO public.events VALUES ('a9f2dcb8-14c2-4738-80b0-7bb75033c8a6', 'bank', 'ada', 's', 4, 'e-710acc49-8291-487d-89ea-2d0fadda945c', 1795840585.4861999, '{"id": "a9f2dcb8-14c2-4738-80b0-7bb75033c8a6", "author": "clerk", "content": {"role": "model", "parts": [{"functionCall": {"id": "adk-ccc503e7-00c4-4b3e-a1f2-410723a2c3a7", "args": {"to": "Anna", "amount": 250.0}, "name": "pay"}}]}, "timestamp": 1795840585.4861999, "invocationId": "e-710acc49-8291-487d-89ea-2d0fadda945c", "turnComplete": true}', NULL);
INSERT INTO public.events VALUES ('245331a5-5aff-4113-b291-09a9182f3127', 'bank', 'ada', 's', 5, 'e-710acc49-8291-487d-89ea-2d0fadda945c', 1795840585.501864, '{"id": "245331a5-5aff-4113-b291-09a9182f3127", "author": "clerk", "content": {"role": "model", "parts": [{"functionCall": {"id": "adk-af6e3395-da65-4a1d-9e91-731cb367ffe9", "args": {"askedOf": {"ran": false, "tool": "0368cd7a19b5f7dc9a692de225a66640"}, "toolConfirmation": {"hint": "Approve or reject the call of pay() by answering with a FunctionResponse whose response is a ToolConfirmation: {''confirmed'': true} or {''confirmed'': false}.", "confirmed": false}, "originalFunctionCall": {"id": "adk-ccc503e7-00c4-4b3e-a1f2-410723a2c3a7", "args": {"to": "Anna", "amount": 250.0}, "name": "pay"}}, "name": "adk_request_confirmation"}}]}, "timestamp": 1795840585.501864, "invocationId": "e-710acc49-8291-487d-89ea-2d0fadda945c", "longRunningToolIds": ["adk-af6e3395-da65-4a1d-9e91-731cb367ffe9"]}', '{"content":{"parts":[{"functionCall":{"id":"adk-af6e3395-da65-4a1d-9e91-731cb367ffe9","args":{"originalFunctionCall":{"id":"adk-ccc503e7-00c4-4b3e-a1f2-410723a2c3a7","args":{"to":"Anna","amount":250.0},"name":"pay"},"toolConfirmation":{"hint":"Approve or reject the call of pay() by answering with a FunctionResponse whose response is a ToolConfirmation: {''confirmed'': true} or {''confirmed'': false}.","confirmed":false},"askedOf":{"tool":"0368cd7a19b5f7dc9a692de225a66640","ran":false}},"name":"adk_request_confirmation"}}],"role":"model"},"id":"245331a5-5aff-4113-b291-09a9182f3127","invocationId":"e-710acc49-8291-487d-89ea-2d0fadda945c","author":"clerk","longRunningToolIds":["adk-af6e3395-da65-4a1d-9e91-731cb367ffe9"],"timestamp":1795840585.501864}');
INSERT INTO public.events VALUES ('fad888af-c650-4a3d-be87-3d46818d8e29', 'bank', 'ada', 's', 6, 'e-710acc49-8291-487d-89ea-2d0fadda945c', 1795840585.5010033, '{"id": "fad888af-c650-4a3d-be87-3d46818d8e29", "author": "clerk", "actions": {"skipSummarization": true, "requestedToolConfirmations": {"adk-ccc503e7-00c4-4b3e-a1f2-410723a2c3a7": {"hint": "", "confirmed": false}}}, "content": {"role": "user", "parts": [{"functionResponse": {"id": "adk-ccc503e7-00c4-4b3e-a1f2-410723a2c3a7", "name": "pay", "response": {"error": "this call needs a person''s approval and has not run yet; it runs once it is approved"}, "willContinue": true}}]}, "timestamp": 1795840585.5010033, "invocationId": "e-710acc49-8291-487d-89ea-2d0fadda945c"}', NULL);
INSERT INTO public.initial_states VALUES (1, '{"budget":400}');
INSERT INTO public.leases VALUES (1, 2, NULL, 'process 10392 on vm (4b19df8e)', 1795840585.4640555, 0);
INSERT INTO public.runs OVERRIDING SYSTEM VALUE VALUES (1, 1, 'e-83e98ea9-994d-4727-8f44-7cdea281fd61', 'f5dc0e8ea4a99113b19fb75b76073873', 'process 10392 on vm (4b19df8e)', 1795840584.486767, 'done');
INSERT INTO public.runs OVERRIDING SYSTEM VALUE VALUES (3, 1, 'e-710acc49-8291-487d-89ea-2d0fadda945c', 'f5dc0e8ea4a99113b19fb75b76073873', 'process 10392 on vm (4b19df8e)', 1795840585.4640555, 'waiting');
INSERT INTO public.sessions OVERRIDING SYSTEM VALUE VALUES (1, 'bank', 'ada', 's', '{"budget": 400}', NULL, 1795840584.1452754, 1795840585.5010033, 6);
INSERT INTO public.user_states VALUES ('bank', 'ada', '{"name": "Ada é"}', NULL, 1795840584.1452754, 1);
SELECT pg_catalog.setval('public.intents_place_seq', 1, false);
SELECT pg_catalog.setval('public.runs_place_seq', 4, true);
SELECT pg_catalog.setval('public.sessions_number_seq', 1, true);
ALTER TABLE ONLY public.adk_internal_metadata
    ADD CONSTRAINT adk_internal_metadata_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.app_states
    ADD CONSTRAINT app_states_pkey PRIMARY KEY (app_name);
ALTER TABLE ONLY public.consumed
    ADD CONSTRAINT consumed_pkey PRIMARY KEY (session, key);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_app_name_user_id_session_id_seq_key UNIQUE (app_name, user_id, session_id, seq);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (app_name, user_id, session_id, id);
ALTER TABLE ONLY public.initial_states
    ADD CONSTRAINT initial_states_pkey PRIMARY KEY (session);
ALTER TABLE ONLY public.intents
    ADD CONSTRAINT intents_pkey PRIMARY KEY (place);
ALTER TABLE ONLY public.intents
    ADD CONSTRAINT intents_session_key_attempt_key UNIQUE (session, key, attempt);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (session);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (place);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_session_run_id_key UNIQUE (session, run_id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_app_name_user_id_id_key UNIQUE (app_name, user_id, id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.user_states
    ADD CONSTRAINT user_states_pkey PRIMARY KEY (app_name, user_id);
CREATE INDEX events_by_time ON public.events USING btree (app_name, user_id, session_id, "timestamp" DESC, id DESC);
ALTER TABLE ONLY public.consumed
    ADD CONSTRAINT consumed_session_fkey FOREIGN KEY (session) REFERENCES public.sessions(number) ON DELETE CASCADE;
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_app_name_user_id_session_id_fkey FOREIGN KEY (app_name, user_id, session_id) REFERENCES public.sessions(app_name, user_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.initial_states
    ADD CONSTRAINT initial_states_session_fkey FOREIGN KEY (session) REFERENCES public.sessions(number) ON DELETE CASCADE;
ALTER TABLE ONLY public.intents
    ADD CONSTRAINT intents_session_fkey FOREIGN KEY (session) REFERENCES public.sessions(number) ON DELETE CASCADE;
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_session_fkey FOREIGN KEY (session) REFERENCES public.sessions(number) ON DELETE CASCADE;
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_session_fkey FOREIGN KEY (session) REFERENCES public.sessions(number) ON DELETE CASCADE;
